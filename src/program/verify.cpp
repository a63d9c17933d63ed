#include <algorithm>
#include <limits>
#include <set>
#include <unordered_set>

#include "base/dims.h"
#include "base/shown.h"
#include "program/flow.h"

namespace weft::program {
namespace {

Status check_name(std::string_view what, std::string_view name) {
  if (name.empty()) return invalid("{} has no name", what);
  // Names are printed, one call a line, and end up in paths and terminals.
  for (const char c : name)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      return invalid("{}'s name holds control characters", what);
  return {};
}

template <class T>
Status check_names(std::string_view what, const std::vector<T>& items) {
  std::set<std::string_view> seen;
  for (size_t i = 0; i < items.size(); ++i) {
    WEFT_CHECK(check_name(fmt::format("{} {}", what, i), items[i].name));
    if (!seen.insert(items[i].name).second)
      return invalid("two {}s are called '{}'", what, shown(items[i].name));
  }
  return {};
}

class Checker {
 public:
  explicit Checker(const CompiledProgram& program) : p_(program), flow_(program.values) {}

  Status run() {
    WEFT_CHECK(check_symbols(p_.symbols));
    WEFT_CHECK(names());
    WEFT_CHECK(specs(p_.values));
    WEFT_CHECK(regions());
    WEFT_CHECK(blobs());
    WEFT_CHECK(beginning());
    WEFT_CHECK(calls());
    return ending();
  }

 private:
  Status names() {
    if (!p_.name.empty()) WEFT_CHECK(check_name("the program", p_.name));
    WEFT_CHECK(check_names("input", p_.inputs));
    WEFT_CHECK(check_names("output", p_.outputs));
    WEFT_CHECK(check_names("state", p_.states));
    return check_names("weight", p_.weights);
  }

  // ---- dimensions, types, attributes ----

  /// Uses only listed symbols, and survives writing and reading unchanged.
  Status dim(Dim d) {
    if (d.is_const() || !good_dims_.insert(d.bits()).second) return {};
    std::vector<Symbol> used;
    collect_symbols(d, used);
    for (const Symbol& s : used)
      if (std::find(p_.symbols.begin(), p_.symbols.end(), s) == p_.symbols.end())
        return invalid("dimension {} uses symbol {} in {}..{}, which is not listed", shown(d.text()), s.name,
                       s.min, s.max);
    WEFT_TRY(const Dim again, read_dim(d.text(), p_.symbols));
    if (again != d) return invalid("dimension {} reads back as {}", shown(d.text()), shown(again.text()));
    return {};
  }
  /// Also for the largest values of its symbols, sizes in bytes and strides fit 63 bits.
  Status spec(const TensorSpec& v) {
    if (static_cast<int>(v.type.dtype) >= kDTypeCount)
      return invalid("element type {}", static_cast<int>(v.type.dtype));
    auto bytes = static_cast<int64_t>(byte_size(v.type.dtype));
    for (const Dim d : v.type.shape) {
      WEFT_CHECK(dim(d));
      if (d.max() < 0)
        return invalid("{} has the negative dimension {}", shown(text(v.type)), shown(d.text()));
      // Zeros count as one, so the order of the dimensions does not matter.
      if (__builtin_mul_overflow(bytes, std::max<int64_t>(d.max(), 1), &bytes))
        return invalid("{} may have more bytes than 63 bits can count", shown(text(v.type)));
    }
    return {};
  }
  Status specs(const std::vector<TensorSpec>& values) {
    if (values.size() > static_cast<size_t>(std::numeric_limits<ValueId>::max()))
      return invalid("{} values are too many", values.size());
    for (size_t i = 0; i < values.size(); ++i) WEFT_CHECK(spec(values[i]).at(fmt::format("value %{}", i)));
    return {};
  }
  Status attrs(const KernelCall& c) {
    for (size_t i = 0; i < c.attrs.size(); ++i) {
      WEFT_CHECK(check_name("an attribute", c.attrs[i].name));
      if (i > 0 && !(c.attrs[i - 1].name < c.attrs[i].name))
        return invalid("attribute {} after {}; wanted each once, sorted", shown(c.attrs[i].name),
                       shown(c.attrs[i - 1].name));
      if (const auto* list = std::get_if<Shape>(&c.attrs[i].value))
        for (const Dim d : *list) WEFT_CHECK(dim(d).at(fmt::format("attribute {}", shown(c.attrs[i].name))));
    }
    for (size_t i = 0; i < c.defaults.size(); ++i) {
      if (i > 0 && !(c.defaults[i - 1] < c.defaults[i])) return invalid("defaults; wanted each once, sorted");
      const auto at = std::lower_bound(c.attrs.begin(), c.attrs.end(), c.defaults[i],
                                       [](const Attr& a, const std::string& n) { return a.name < n; });
      if (at == c.attrs.end() || at->name != c.defaults[i])
        return invalid("default {} is no attribute of the call", shown(c.defaults[i]));
    }
    return {};
  }
  Status signature(const KernelCall& c) {
    WEFT_CHECK(check_name("the op", c.op));
    return attrs(c);
  }

  // ---- regions, blobs, calls ----

  Status regions() {
    for (size_t i = 0; i < p_.regions.size(); ++i) {
      const Region& r = p_.regions[i];
      const std::string where = fmt::format("region @r{} {}", i, shown(r.pattern));
      WEFT_CHECK(specs(r.values).at(where));
      for (size_t k = 0; k < r.calls.size(); ++k)
        WEFT_CHECK(signature(r.calls[k]).at(where + ": " + call_text(k, r.calls[k])));
      auto use = check_region(r, std::span(p_.regions).first(i), uses_);
      if (!use.ok()) return use.take_status().at(where);
      uses_.push_back(std::move(*use));
    }
    return {};
  }

  /// `value` has one size, and blob `blob` exactly that many bytes: the tensor, row-major.
  Status bytes_of(ValueId value, int32_t blob) {
    if (value < 0 || static_cast<size_t>(value) >= p_.values.size())
      return invalid("value %{}; wanted one of the {} that are listed", value, p_.values.size());
    const TensorType& type = p_.values[static_cast<size_t>(value)].type;
    auto bytes = static_cast<uint64_t>(byte_size(type.dtype));
    for (const Dim d : type.shape) {
      if (!d.is_const()) return invalid("its type {} must have no symbols", shown(text(type)));
      bytes *= static_cast<uint64_t>(d.value());  // spec() has checked that this fits
    }
    if (blob == -1) return {};
    if (blob < 0 || static_cast<size_t>(blob) >= p_.blobs.size())
      return invalid("blob {}; the program has {}", blob, p_.blobs.size());
    const uint64_t have = p_.blobs[static_cast<size_t>(blob)].size;
    if (have != bytes)
      return invalid("blob {} has {} bytes, {} wants {}", blob, have, shown(text(type)), bytes);
    return {};
  }
  Status blobs() {
    for (size_t i = 0; i < p_.blobs.size(); ++i)
      if (!p_.blobs[i].data && p_.blobs[i].size > 0) return invalid("blob {} has a size, but no bytes", i);
    for (const auto& w : p_.weights) {
      if (w.blob == -1) return invalid("weight '{}' has no blob", shown(w.name));
      WEFT_CHECK(bytes_of(w.value, w.blob).at(fmt::format("weight '{}'", shown(w.name))));
    }
    for (const auto& s : p_.states)
      WEFT_CHECK(bytes_of(s.before, s.blob).at(fmt::format("state '{}'", shown(s.name))));
    return {};
  }

  Status beginning() {
    for (const auto& i : p_.inputs)
      WEFT_CHECK(flow_.define(i.value).at(fmt::format("input '{}'", shown(i.name))));
    for (const auto& w : p_.weights)
      WEFT_CHECK(flow_.define(w.value, true).at(fmt::format("weight '{}'", shown(w.name))));
    for (const auto& s : p_.states)
      WEFT_CHECK(flow_.define(s.before).at(fmt::format("state '{}'", shown(s.name))));
    return {};
  }
  Status calls() {
    for (size_t i = 0; i < p_.calls.size(); ++i) {
      const KernelCall& c = p_.calls[i];
      WEFT_CHECK(call(c).at(call_text(i, c)));
    }
    return {};
  }
  Status call(const KernelCall& c) {
    WEFT_CHECK(signature(c));
    WEFT_CHECK(flow_.call(c));
    if (c.region == -1) return {};
    if (c.region < 0 || static_cast<size_t>(c.region) >= p_.regions.size())
      return invalid("region {}; the program has {}", c.region, p_.regions.size());
    const auto r = static_cast<size_t>(c.region);
    return check_region_call(c, p_.values, p_.regions[r], uses_[r]);
  }
  Status ending() {
    for (const auto& o : p_.outputs)
      WEFT_CHECK(flow_.read(o.value).at(fmt::format("output '{}'", shown(o.name))));
    for (const auto& s : p_.states) {
      const ValueId last = flow_.last(s.before);
      if (s.after != last)
        return invalid("state '{}' ends as %{}, but the buffer of %{} holds %{} then", shown(s.name), s.after,
                       s.before, last);
    }
    return flow_.finish();
  }

  const CompiledProgram& p_;
  Flow flow_;
  std::vector<RegionUse> uses_;
  std::unordered_set<uint64_t> good_dims_;  // by Dim::bits: each expression is checked once
};

}  // namespace

Status verify(const CompiledProgram& program) { return Checker(program).run(); }

}  // namespace weft::program
