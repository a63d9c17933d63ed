#include <algorithm>
#include <map>
#include <optional>

#include "link/share.h"

namespace weft::link {
namespace {

// A body may add halves in f32 and round the sum. Kernels that add their result to what is there round each
// partial sum instead, but not the result itself, so there are no more roundings. A sum of many halves would
// lose the small ones: that stays in f32.
constexpr uint32_t kMostRoundedBetween = 3;

/// Follows a body that sums its operands, from the first to the last.
class SumBody {
 public:
  SumBody(const seam::RegionDesc& body, const seam::ConcreteType& type)
      : body_(body), type_(type), parts_(body.values.size()) {
    for (uint32_t i = 0; i < body.n_inputs; ++i) parts_[i] = {i, i + 1};
  }

  bool is_sum() {
    for (const auto& step : body_.steps)
      if (!(step.call.op == "add" ? follows_add(step) : step.call.op == "cast" && follows_cast(step)))
        return false;
    const Part all = parts_[body_.outputs[0]];
    return all.begin == 0 && all.end == body_.n_inputs && (!in_f32_ || body_.n_inputs <= kMostRoundedBetween);
  }
  /// Are halves added in f32?
  bool in_f32() const { return in_f32_; }

 private:
  struct Part {  // the sum of these operands; of none: anything else
    uint32_t begin = 0, end = 0;
  };
  bool follows_add(const seam::StepDesc& step) {
    Part a = parts_[step.inputs[0]], b = parts_[step.inputs[1]];
    if (a.begin > b.begin) std::swap(a, b);
    if (a.begin != 0 || a.end != b.begin || b.end != b.begin + 1) return false;
    parts_[step.outputs[0]] = {0, b.end};
    return body_.values[step.outputs[0]].shape == type_.shape;
  }
  bool follows_cast(const seam::StepDesc& step) {
    const DType from = body_.values[step.inputs[0]].dtype, to = body_.values[step.outputs[0]].dtype;
    const auto fits = [&](DType t) { return t == type_.dtype || t == DType::f32; };
    parts_[step.outputs[0]] = parts_[step.inputs[0]], in_f32_ = true;
    return is_half(type_.dtype) && fits(from) && fits(to);
  }

  const seam::RegionDesc& body_;
  const seam::ConcreteType& type_;
  std::vector<Part> parts_;  // by value
  bool in_f32_ = false;
};

enum class Order { given, any };

// Is the call a plain sum of its operands? If so, whether another order may give other bits.
std::optional<Order> sum_in(const seam::CallDesc& call) {
  const auto alike = [&](const auto& t) { return t && *t == call.outputs[0]; };
  if (call.outputs.size() != 1 || call.accumulate || !call.updates.empty() ||
      !std::ranges::all_of(call.inputs, alike))
    return {};
  if (call.op == "add") return Order::any;
  if (call.op != "region" || !call.region) return {};
  SumBody body(*call.region, call.outputs[0]);
  if (!body.is_sum()) return {};
  return call.inputs.size() <= 2 || body.in_f32() ? Order::any : Order::given;
}

class Sums {
 public:
  Sums(const program::CompiledProgram& program, FlatProgram& flat, Devices devices, bool decided)
      : flat_(flat), devices_(devices), decided_(decided), flow_(program, flat) {}

  // Makes the sum in the memory of its first operand: each other one's maker adds to it, when all else that
  // reads the first one has.
  bool make_in_place(const FlatCall& call, size_t i) {
    const auto order = call.prepared && is_here(call) ? sum_in(call.prepared->call->desc()) : std::nullopt;
    if (!order) return false;
    const FlatValue& out = value(call.outputs[0]);
    if (out.over >= 0 || out.overwritten || out.view_of >= 0) return false;  // it has its place, or lends it
    Ids parts = call.inputs;
    if (*order == Order::any)
      std::ranges::stable_sort(parts, {}, [&](int32_t v) { return flow_.of(v).maker; });
    std::vector<std::shared_ptr<seam::PreparedKernel>> prepared;
    for (size_t k = 0; k < parts.size(); ++k) {
      const int32_t v = parts[k];
      const Flow::Fact& fact = flow_.of(v);
      if (!flow_.is_own(v) || fact.last != i || (k > 0 && fact.readers > 1)) return false;
      if (k == 0) continue;
      const Flow::Fact& first = flow_.of(parts[0]);
      if (fact.maker <= flow_.of(parts[k - 1]).maker) return false;
      if (first.readers > 1 && static_cast<int64_t>(first.before) >= fact.maker) return false;
      prepared.push_back(adding(maker_of(v), flow_.root(v)));
      if (!prepared.back()) return false;
    }
    for (size_t k = 1; k < parts.size(); ++k) add_to(parts[k - 1], parts[k], prepared[k - 1]);
    flow_.becomes(call.outputs[0], parts.back());
    value(call.outputs[0]).view_of = parts.back();
    return true;
  }

 private:
  FlatValue& value(int32_t id) { return flat_.values[static_cast<size_t>(id)]; }
  FlatCall& maker_of(int32_t v) { return flat_.calls[static_cast<size_t>(flow_.of(v).maker)]; }
  bool is_here(const FlatCall& call) const { return devices_[call.device]->shares_memory(*devices_[0]); }

  // The call's kernel, prepared to add its result v to what is there; null where it refuses.
  std::shared_ptr<seam::PreparedKernel> adding(const FlatCall& call, int32_t v) {
    if (!call.prepared || !is_here(call) || call.onto >= 0) return nullptr;
    const auto k = static_cast<uint64_t>(std::ranges::find(call.outputs, v) - call.outputs.begin());
    if (k == call.outputs.size()) return nullptr;  // made in parts
    seam::CallDesc desc = call.prepared->call->desc();
    if (decided_) return desc.accumulate >> k & 1 ? call.prepared : nullptr;
    if (!desc.updates.empty()) return nullptr;
    desc.accumulate |= uint64_t{1} << k;
    const auto [at, fresh] = prepared_.try_emplace({call.prepared, k});
    if (!fresh) return at->second;
    return at->second = ask_again(call, std::move(desc), devices_);
  }

  void add_to(int32_t before, int32_t v, std::shared_ptr<seam::PreparedKernel> prepared) {
    const int32_t root = flow_.root(v);
    FlatCall& maker = maker_of(v);
    maker.prepared = std::move(prepared), maker.onto = flow_.root(before);
    flat_.choices[maker.choice].adds = maker.prepared->call->desc().accumulate;
    value(root).over = maker.onto;
  }

  FlatProgram& flat_;
  const Devices devices_;
  const bool decided_;
  Flow flow_;
  std::map<std::pair<std::shared_ptr<seam::PreparedKernel>, uint64_t>, std::shared_ptr<seam::PreparedKernel>>
      prepared_;
};

}  // namespace

void add_in_place(const program::CompiledProgram& program, FlatProgram& flat, Devices devices, bool decided) {
  Sums sums(program, flat, devices, decided);
  std::vector<bool> gone(flat.calls.size());
  for (size_t i = 0; i < flat.calls.size(); ++i) gone[i] = sums.make_in_place(flat.calls[i], i);
  size_t i = 0;
  std::erase_if(flat.calls, [&](const FlatCall&) { return gone[i++]; });
}

}  // namespace weft::link
