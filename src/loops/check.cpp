#include "loops/check.h"

#include <limits>

namespace weft::loops {
namespace {

Status check_type(const weft_type* t, const std::string& who) {
  if (!t) return fail(Code::unsupported, "{} is absent", who);
  if (t->dtype.lanes != 1 || !dtype_from_dlpack(t->dtype.code, t->dtype.bits))
    return fail(Code::unsupported, "{} has DLPack dtype code {} bits {} lanes {}", who, t->dtype.code,
                t->dtype.bits, t->dtype.lanes);
  if (t->rank < 0 || t->rank > static_cast<int32_t>(kMaxRank))
    return fail(Code::unsupported, "{} has rank {}, wanted <= {}", who, t->rank, kMaxRank);
  if (t->layout != 0) return fail(Code::unsupported, "{} has layout {}, wanted row-major", who, t->layout);
  if (t->strides) return fail(Code::unsupported, "{} is strided, wanted contiguous", who);
  const size_t bytes = byte_size(dtype(*t));
  if (t->alignment % bytes != 0)
    return fail(Code::unsupported, "{} is aligned to {}, wanted {} for {}", who, t->alignment, bytes,
                name(dtype(*t)));
  double elements = 1;
  for (int32_t d = 0; d < t->rank; ++d) elements *= static_cast<double>(t->max[d]);
  if (elements > std::numeric_limits<int32_t>::max())
    return fail(Code::unsupported, "{} may have {:.0f} elements, wanted < 2^31: texts address with 32 bits",
                who, elements);
  return {};
}

/// Calls visit(type, "input 2") for every operand, except optional ones that are absent; stops at the first
/// failure.
template <class F>
Status each_operand(const weft_call& call, bool absent, F visit) {
  for (uint32_t k = 0; k < call.n_inputs; ++k)
    if (call.inputs[k] || !absent) WEFT_CHECK(visit(call.inputs[k], fmt::format("input {}", k)));
  for (uint32_t k = 0; k < call.n_outputs; ++k)
    WEFT_CHECK(visit(call.outputs[k], fmt::format("output {}", k)));
  return {};
}

Status check_overwrite(const weft_call& call, Overwrite overwrite) {
  for (uint32_t k = 0; k < call.n_outputs; ++k) {
    if (!(call.updates >> k & 1)) continue;
    const uint32_t over = call.update_inputs[k];
    if (overwrite == Overwrite::never || (overwrite == Overwrite::first && over != 0) ||
        over >= call.n_inputs)
      return fail(Code::unsupported, "output {} is written over input {}, which other items still read", k,
                  over);
    const weft_type &out = *call.outputs[k], &in = *call.inputs[over];
    if (dtype(out) != dtype(in) || product(max_shape(out)) != product(max_shape(in)) ||
        product(min_shape(out)) != product(min_shape(in)))
      return fail(Code::unsupported, "output {} {} is written over input {} {}, which has another size", k,
                  text(max_shape(out)), over, text(max_shape(in)));
  }
  return {};
}

uint64_t parameter_bytes(const weft_call& call, const Form& form) {
  const uint64_t inputs = std::min(call.n_inputs, form.most_inputs), buffers = inputs + call.n_outputs,
                 rank = static_cast<uint64_t>(call.outputs[0]->rank);
  const uint64_t values = call.region ? call.region->n_steps : 1;  // at most one 64-bit value for each `full`
  return 16 * buffers + 4 * (8 + rank * (1 + inputs)) + 8 * values;
}

}  // namespace

Status check_operands(const weft_call& call, bool absent) {
  if (call.n_outputs == 0) return invalid("{} has no outputs", call.op);
  WEFT_CHECK(each_operand(call, absent, check_type));
  for (uint32_t i = 0; call.region && i < call.region->n_steps; ++i) {
    const auto check = [&](const weft_type* t, const std::string& who) {
      return check_type(t, fmt::format("{} of step {} of the body", who, i));
    };
    WEFT_CHECK(each_operand(*call.region->steps[i]->call, absent, check));
  }
  return {};
}

Status check_common(const weft_call& call, const Form& form, const weft_capability& device) {
  if (call.accumulate) return fail(Code::unsupported, "accumulate: this kernel overwrites its outputs");
  if (call.determinism > form.determinism)
    return fail(Code::unsupported, "determinism level {} is asked for, this kernel gives {}",
                call.determinism, form.determinism);
  WEFT_CHECK(check_operands(call, form.absent));
  const auto check = [&](const weft_type* t, const std::string& who) -> Status {
    const DType type = dtype(*t);
    if (!(device.dtypes >> static_cast<int>(type) & 1))
      return fail(Code::unsupported, "{} is {}, which {}:{} does not have", who, name(type), device.kind,
                  device.ordinal);
    const uint64_t bytes = static_cast<uint64_t>(product(max_shape(*t))) * byte_size(type);
    if (device.max_binding && bytes > device.max_binding)
      return fail(Code::unsupported, "{} may have {} bytes, {}:{} binds at most {}", who, bytes, device.kind,
                  device.ordinal, device.max_binding);
    return {};
  };
  WEFT_CHECK(each_operand(call, form.absent, check));
  if (call.region && call.region->n_steps > kMostBodySteps)
    return fail(Code::unsupported, "its body has {} calls, wanted at most {}", call.region->n_steps,
                kMostBodySteps);
  for (uint32_t i = 0; call.region && i < call.region->n_steps; ++i)
    WEFT_CHECK(each_operand(*call.region->steps[i]->call, form.absent, check));
  if (form.stages) return {};  // the form checks its own
  if (const uint64_t bytes = parameter_bytes(call, form); bytes > kMaxParameterBytes)
    return fail(Code::unsupported,
                "{} inputs and {} outputs of rank {} need {} bytes of arguments, wanted <= {}", call.n_inputs,
                call.n_outputs, call.outputs[0]->rank, bytes, kMaxParameterBytes);
  return check_overwrite(call, form.overwrite);
}

}  // namespace weft::loops
