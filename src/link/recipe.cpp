#include "link/recipe.h"

#include <algorithm>
#include <map>

#include "link/resolve_types.h"

namespace weft::link {
namespace {

using program::CompiledProgram;
using program::KernelCall;
using program::Region;
using program::ValueId;

constexpr uint64_t kMostGrowth = 2;
constexpr uint64_t kSmall = uint64_t{1} << 20;  // such as a table of angles: whatever it was made from

bool has_symbols(const Shape& dims) {
  return !std::ranges::all_of(dims, [](const Dim& d) { return d.is_const(); });
}

// Bytes of a type without symbols.
std::optional<uint64_t> bytes_of(const program::TensorSpec& spec) {
  if (has_symbols(spec.type.shape)) return {};
  const auto type = concrete(spec, {});
  return type.ok() ? std::optional(type.value().bytes()) : std::nullopt;
}

// An attribute may depend on a symbol where no result does, such as the index of the last element.
bool has_symbols(const KernelCall& call, const CompiledProgram& p) {
  const auto told = [](const Attr& a) {
    const auto* dims = std::get_if<Shape>(&a.value);
    return dims && has_symbols(*dims);
  };
  if (std::ranges::any_of(call.attrs, told)) return true;
  if (call.region < 0) return false;
  const Region& body = p.regions[static_cast<size_t>(call.region)];
  return std::ranges::any_of(body.values, [](const auto& v) { return has_symbols(v.type.shape); }) ||
         std::ranges::any_of(body.calls, [&](const KernelCall& step) { return has_symbols(step, p); });
}

// A linker may make these views, without a step.
bool is_view(const KernelCall& call) { return call.op == "reshape" || call.op == "slice"; }

class Splitter {
 public:
  Splitter(const CompiledProgram& program, const std::vector<bool>& constant)
      : p_(program),
        made_from_(program.values.size()),
        in_rest_(p_.calls.size()),
        in_recipe_(p_.calls.size()),
        overwritten_(p_.values.size()) {
    for (const auto& call : p_.calls)
      for (const auto& update : call.updates) overwritten_[at(call.inputs[update.input])] = true;
    for (size_t i = 0; i < p_.weights.size(); ++i)
      if (constant[i]) made_from_[at(p_.weights[i].value)] = bytes_of(p_.values[at(p_.weights[i].value)]);
    for (const auto& call : p_.calls) follow(call);
    share_out();
  }

  std::optional<Recipe> split() {
    std::vector<ValueId> results;
    for (size_t id = 0; id < p_.values.size(); ++id)
      if (crosses_[id]) results.push_back(static_cast<ValueId>(id));
    if (results.empty()) return {};
    Recipe parts{.recipe = {}, .rest = p_};
    parts.rest.calls.clear();
    for (size_t i = 0; i < p_.calls.size(); ++i)
      if (in_rest_[i]) parts.rest.calls.push_back(p_.calls[i]);
    for (const ValueId id : results)
      parts.rest.weights.push_back(
          {fmt::format("made {}", parts.rest.weights.size() - p_.weights.size()), id, -1});
    write_recipe(parts.recipe, results);
    return parts;
  }

 private:
  static size_t at(ValueId id) { return static_cast<size_t>(id); }

  // Results computed from constants alone get the bytes of their source weights; other values get none.
  void follow(const KernelCall& call) {
    uint64_t from = 0;
    for (const ValueId id : call.inputs) {
      if (id == program::kAbsent) continue;
      if (!made_from_[at(id)]) return;
      from += *made_from_[at(id)];
    }
    if (!call.updates.empty() || has_symbols(call, p_)) return;
    uint64_t bytes = 0;
    for (const ValueId id : call.outputs) {
      const auto own = bytes_of(p_.values[at(id)]);
      if (!own || overwritten_[at(id)]) return;  // each run overwrites a value of its own
      bytes += *own;
    }
    if (bytes > std::max(kMostGrowth * from, kSmall)) return;
    for (const ValueId id : call.outputs) made_from_[at(id)] = from;
  }

  // Backwards: the values that the rest reads, those that the recipe must make for it, and their operands.
  void share_out() {
    std::vector<bool> rest(p_.values.size()), recipe(p_.values.size());
    crosses_.resize(p_.values.size());
    for (const auto& port : p_.outputs) rest[at(port.value)] = true;
    for (size_t i = p_.calls.size(); i-- > 0;) {
      const KernelCall& call = p_.calls[i];
      const auto read_by = [&](const std::vector<bool>& part) {
        return std::ranges::any_of(call.outputs, [&](ValueId id) { return part[at(id)]; });
      };
      const bool constant = !call.outputs.empty() && made_from_[at(call.outputs[0])].has_value();
      in_rest_[i] = !constant || (is_view(call) && read_by(rest));
      if (constant && !in_rest_[i])
        for (const ValueId id : call.outputs) crosses_[at(id)] = rest[at(id)];
      in_recipe_[i] = constant && (read_by(recipe) || (!in_rest_[i] && read_by(rest)));
      for (const ValueId id : call.inputs) {
        if (id == program::kAbsent) continue;
        if (in_rest_[i]) rest[at(id)] = true;
        if (in_recipe_[i]) recipe[at(id)] = true;
      }
    }
  }

  // A program of its own with values renumbered: equal recipes of different programs are equal.
  void write_recipe(CompiledProgram& recipe, const std::vector<ValueId>& results) const {
    std::map<ValueId, ValueId> values;
    std::map<int32_t, int32_t> regions, blobs;
    const auto value = [&](ValueId id) {
      if (id == program::kAbsent) return id;
      const auto [known, added] = values.try_emplace(id, static_cast<ValueId>(values.size()));
      if (added) recipe.values.push_back(p_.values[at(id)]);
      return known->second;
    };
    std::vector<KernelCall> calls;
    for (size_t i = 0; i < p_.calls.size(); ++i) {
      if (!in_recipe_[i]) continue;
      KernelCall call = p_.calls[i];
      std::ranges::transform(call.inputs, call.inputs.begin(), value);
      std::ranges::transform(call.outputs, call.outputs.begin(), value);
      call.region = region(recipe, regions, call.region);
      calls.push_back(std::move(call));
    }
    recipe.calls = std::move(calls);
    for (const auto& w : p_.weights)
      if (const auto known = values.find(w.value); known != values.end()) {
        const auto [blob, added] = blobs.try_emplace(w.blob, static_cast<int32_t>(blobs.size()));
        if (added) recipe.blobs.push_back(p_.blobs[static_cast<size_t>(w.blob)]);
        recipe.weights.push_back({w.name, known->second, blob->second});
      }
    for (const ValueId id : results)
      recipe.outputs.push_back({fmt::format("made {}", recipe.outputs.size()), value(id)});
  }

  int32_t region(CompiledProgram& recipe, std::map<int32_t, int32_t>& known, int32_t i) const {
    if (i < 0) return i;
    if (const auto there = known.find(i); there != known.end()) return there->second;
    Region copy = p_.regions[static_cast<size_t>(i)];
    for (auto& call : copy.calls) call.region = region(recipe, known, call.region);  // those come before
    recipe.regions.push_back(std::move(copy));
    return known[i] = static_cast<int32_t>(recipe.regions.size() - 1);
  }

  const CompiledProgram& p_;
  std::vector<std::optional<uint64_t>> made_from_;  // by value
  std::vector<bool> in_rest_, in_recipe_;           // by call
  std::vector<bool> overwritten_;                   // by value: by an update
  std::vector<bool> crosses_;                       // by value: from the recipe to the rest
};

}  // namespace

std::optional<Recipe> split_recipe(const CompiledProgram& program, const std::vector<bool>& constant) {
  return Splitter(program, constant).split();
}

}  // namespace weft::link
