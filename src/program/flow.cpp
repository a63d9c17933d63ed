#include "program/flow.h"

#include <algorithm>

#include "base/shown.h"

namespace weft::program {

std::string call_text(size_t index, const KernelCall& call) {
  return call.where.empty() ? fmt::format("call {} {}", index, shown(call.op))
                            : fmt::format("call {} {} ({})", index, shown(call.op), shown(call.where));
}

Status Flow::define(ValueId id, bool constant) {
  if (!in_range(id)) return invalid("value %{}; wanted one of the {} that are listed", id, values_.size());
  if (fact(id).defined) return invalid("value %{} is defined twice", id);
  fact(id).defined = true;
  fact(id).constant = constant;
  return {};
}

Status Flow::read(ValueId id) {
  if (!in_range(id)) return invalid("value %{}; wanted one of the {} that are listed", id, values_.size());
  Fact& f = fact(id);
  if (!f.defined) return invalid("value %{} is read before it is defined", id);
  if (f.next != kAbsent) return invalid("value %{} is read after %{} was written over it", id, f.next);
  f.read = true;
  return {};
}

Status Flow::call(const KernelCall& call) {
  for (size_t i = 0; i < call.inputs.size(); ++i)
    if (call.inputs[i] != kAbsent) WEFT_CHECK(read(call.inputs[i]).at(fmt::format("input {}", i)));
  if (call.outputs.size() > kMostResults)
    return invalid("{} results; at most {} are possible", call.outputs.size(), kMostResults);
  for (size_t i = 0; i < call.outputs.size(); ++i)
    WEFT_CHECK(define(call.outputs[i]).at(fmt::format("output {}", i)));
  for (size_t i = 0; i < call.updates.size(); ++i)
    WEFT_CHECK(update(call, call.updates[i]).at(fmt::format("update {}", i)));
  return {};
}

// Two operands of one call may be the same value, so "updated twice" is a property of the value, not of the
// operand.
Status Flow::update(const KernelCall& call, const Update& u) {
  if (u.output >= call.outputs.size() || u.input >= call.inputs.size())
    return invalid("output {} over input {}, but the call has {} outputs and {} inputs", u.output, u.input,
                   call.outputs.size(), call.inputs.size());
  const ValueId from = call.inputs[u.input], to = call.outputs[u.output];
  if (from == kAbsent) return invalid("output {} over input {}, which is left out", u.output, u.input);
  if (fact(from).constant) return invalid("%{} is a weight and may not be overwritten", from);
  if (fact(from).next != kAbsent) return invalid("%{} is updated twice in one call", from);
  if (fact(to).over) return invalid("%{} is written over two values", to);
  const TensorSpec &a = values_[static_cast<size_t>(from)], &b = values_[static_cast<size_t>(to)];
  if (a != b)
    return invalid("%{} is {}, but is written over %{}, which is {}; wanted the same type and layout", to,
                   shown(text(b.type)), from, shown(text(a.type)));
  fact(from).next = to;
  fact(to).over = true;
  return {};
}

Status Flow::finish() const {
  for (size_t i = 0; i < facts_.size(); ++i)
    if (!facts_[i].defined) return invalid("value %{} is listed, but nothing defines it", i);
  return {};
}

// Ends: a value is defined once, by the very update that makes it the next one.
ValueId Flow::last(ValueId id) const {
  while (fact(id).next != kAbsent) id = fact(id).next;
  return id;
}

namespace {

// Adds the needs of a call of a body to the body's.
Status check_nested(const KernelCall& c, std::span<const TensorSpec> values, std::span<const Region> before,
                    std::span<const RegionUse> uses, RegionUse& outer) {
  const auto check_size = [&]() -> Status {
    if (outer.depth <= kMostNested && outer.steps <= kMostSteps) return {};
    return invalid("{} bodies within one another, {} primitive calls; wanted at most {} and {}", outer.depth,
                   outer.steps, kMostNested, kMostSteps);
  };
  if (c.region == -1) return ++outer.steps, check_size();
  const auto inner = static_cast<size_t>(c.region);
  if (c.region < 0 || inner >= before.size())
    return invalid("has body @r{}; wanted one of the {} regions before its own", c.region, before.size());
  outer.depth = std::max(outer.depth, uses[inner].depth + 1);
  outer.steps += uses[inner].steps;
  WEFT_CHECK(check_size());
  return check_region_call(c, values, before[inner], uses[inner]);
}

}  // namespace

Result<RegionUse> check_region(const Region& region, std::span<const Region> before,
                               std::span<const RegionUse> uses) {
  if (region.n_inputs > region.values.size())
    return invalid("{} inputs, but only {} values", region.n_inputs, region.values.size());
  Flow flow(region.values);
  const auto n_inputs = static_cast<ValueId>(region.n_inputs);
  for (ValueId i = 0; i < n_inputs; ++i) WEFT_CHECK(flow.define(i));
  RegionUse use;
  for (size_t i = 0; i < region.calls.size(); ++i) {
    const KernelCall& c = region.calls[i];
    WEFT_CHECK(flow.call(c).at(call_text(i, c)));
    WEFT_CHECK(check_nested(c, region.values, before, uses, use).at(call_text(i, c)));
  }
  for (size_t i = 0; i < region.outputs.size(); ++i)
    WEFT_CHECK(flow.read(region.outputs[i]).at(fmt::format("output {}", i)));
  WEFT_CHECK(flow.finish());
  for (ValueId i = 0; i < n_inputs; ++i) {
    use.reads.push_back(flow.was_read(i));
    use.becomes.push_back(flow.last(i) == i ? kAbsent : flow.last(i));
  }
  return use;
}

namespace {

Status same_type(std::string_view what, size_t i, const TensorSpec& have, const TensorSpec& want) {
  if (have.type == want.type) return {};
  return invalid("{} {} is {}, its region wants {}", what, i, shown(text(have.type)), shown(text(want.type)));
}

/// The values that occur once, sorted.
std::vector<ValueId> named_once(std::vector<ValueId> ids) {
  std::sort(ids.begin(), ids.end());
  std::vector<ValueId> once;
  for (size_t i = 0; i < ids.size(); ++i)
    if ((i == 0 || ids[i - 1] != ids[i]) && (i + 1 == ids.size() || ids[i + 1] != ids[i]))
      once.push_back(ids[i]);
  return once;
}

}  // namespace

Status check_region_call(const KernelCall& call, std::span<const TensorSpec> values, const Region& region,
                         const RegionUse& use) {
  if (call.inputs.size() != region.n_inputs || call.outputs.size() != region.outputs.size())
    return invalid("{} inputs and {} outputs, its region @r{} has {} and {}", call.inputs.size(),
                   call.outputs.size(), call.region, region.n_inputs, region.outputs.size());
  std::vector<ValueId> declared(call.inputs.size(),
                                kAbsent);  // the body's final value, according to the call
  const std::vector<ValueId> once = named_once(call.inputs);
  // The body has separate numbers for them: it could read the second one after the result overwrote the
  // first.
  const auto alone = [&](size_t input) -> Status {
    if (std::binary_search(once.begin(), once.end(), call.inputs[input])) return {};
    return invalid("region @r{} overwrites input {}, but %{} is passed twice", call.region, input,
                   call.inputs[input]);
  };
  for (const Update& u : call.updates) {
    declared[u.input] = region.outputs[u.output];
    WEFT_CHECK(alone(u.input));
  }
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const ValueId in = call.inputs[i];
    if (in == kAbsent) {
      if (use.reads[i]) return invalid("input {} is left out, but region @r{} reads it", i, call.region);
      continue;
    }
    WEFT_CHECK(same_type("input", i, values[static_cast<size_t>(in)], region.values[i]));
    // Running the body in place of a kernel overwrites this operand, so the call has to list the update.
    if (use.becomes[i] == kAbsent) continue;
    if (use.becomes[i] != declared[i])
      return invalid("region @r{} overwrites input {}, but the call lists no such update", call.region, i);
    WEFT_CHECK(alone(i));
  }
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const auto body = static_cast<size_t>(region.outputs[i]);
    WEFT_CHECK(same_type("output", i, values[static_cast<size_t>(call.outputs[i])], region.values[body]));
  }
  return {};
}

}  // namespace weft::program
