#include "loops/form.h"

// Ops along an axis whose elements depend on each other: cumsum and sort. Sizes are folded into [outer, axis,
// inner], so one text serves every rank; direction is an argument.
namespace weft::loops {
namespace {

using codegen::Id;
using codegen::Ids;
using codegen::LoopBuilder;
using codegen::Op;
using codegen::Type;
using codegen::type_of;

Status check_along(const weft_call& call, uint32_t n_outputs) {
  if (call.n_inputs != 1 || call.n_outputs != n_outputs || !call.inputs[0])
    return invalid("{} has {} operands and {} results, wanted 1 and {}", call.op, call.n_inputs,
                   call.n_outputs, n_outputs);
  const DType t = dtype(*call.inputs[0]);
  if (!is_compute(t)) return fail(Code::unsupported, "{} is not for {}, a storage type", call.op, name(t));
  if (dtype(*call.outputs[0]) != t)
    return invalid("{}: result is {}, wanted {}", call.op, name(dtype(*call.outputs[0])), name(t));
  const int64_t axis = int_attr(call, "axis", 0);
  if (axis < 0 || axis >= call.inputs[0]->rank)
    return invalid("{}: axis is {}, wanted 0 <= axis < {}", call.op, axis, call.inputs[0]->rank);
  return {};
}
Status check_cumsum(const weft_call& call) {
  WEFT_CHECK(check_along(call, 1));
  return dtype(*call.inputs[0]) != DType::boolean ? Status()
                                                  : fail(Code::unsupported, "cumsum is not for bool");
}
Status check_sort(const weft_call& call) {
  WEFT_CHECK(check_along(call, 2));
  const DType index = dtype(*call.outputs[1]);
  return index == DType::i32 ? Status() : invalid("sort: indices are {}, wanted i32", name(index));
}

/// Sizes before, along and after the axis.
struct AxisSplit {
  int64_t outer, axis, inner;
};
AxisSplit axis_split(const Operands& o) {
  const size_t axis = static_cast<size_t>(int_attr(o.call, "axis", 0));
  const Sizes x = shape(*o.in[0]);
  return {product(x, 0, axis), x[axis], product(x, axis + 1, x.size())};
}

/// One work item processes one row and stores each running total, from `first` by `step`. With `lag` 1 a
/// total excludes its own element.
codegen::LoopKernel build_cumsum(const weft_call& call, uint32_t) {
  LoopBuilder b;
  const DType t = dtype(*call.inputs[0]);
  const Type acc_type = codegen::accumulator_of(type_of(t));
  const uint32_t x = b.read(t), y = b.write(t);
  const Id n = b.argument(), inner = b.argument(), first = b.argument(), step = b.argument();
  const Id lag = b.argument();
  const Id outer = b.binary(Op::div, b.item(), inner), column = b.binary(Op::mod, b.item(), inner);
  const Id acc = b.accumulator(b.number(acc_type, 0));
  const Id i = b.loop(n);
  const auto at = [&](Id k) { return b.nest(b.nest(outer, n, b.nest(k, step, first)), inner, column); };
  const Id from = b.binary(Op::sub, i, lag);
  const Id v = b.load(x, at(from), b.compare(Op::less, b.index(-1), from));
  b.assign(acc, b.add(acc, b.cast(v, acc_type)));
  b.store(y, at(i), b.cast(acc, type_of(t)));
  b.end(i);
  return b.take();
}
bool bind_cumsum(const Operands& o, uint32_t, Job& job) {
  const AxisSplit s = axis_split(o);
  const bool reverse = int_attr(o.call, "reverse", 0) != 0;
  job.items(s.outer * s.inner);
  for (int64_t n : {s.axis, s.inner, reverse ? s.axis - 1 : 0, reverse ? int64_t{-1} : 1}) job.push(n);
  job.push(int_attr(o.call, "exclusive", 0) != 0);
  job.buffers = {o.in[0], o.out[0]};
  return true;
}

/// a < b, where a NaN is larger than any number.
Id sorts_before(LoopBuilder& b, Id a, Id c) {
  const Id less = b.compare(Op::less, a, c);
  if (!codegen::is_float(b.type(a))) return less;
  return b.select(b.compare(Op::equal, c, c), less, b.compare(Op::equal, a, a));
}

/// Each element counts the elements before it in order, and is stored at that index: n^2 loads for a row of
/// n, no passes and no groups.
codegen::LoopKernel build_sort(const weft_call& call, uint32_t) {
  LoopBuilder b;
  const DType t = dtype(*call.inputs[0]);
  const uint32_t x = b.read(t), values = b.write(t), indices = b.write(DType::i32);
  const Ids extents = b.arguments(3);
  const Id descending = b.argument(Type::boolean);
  const Ids at = b.coordinates(b.item(), extents);
  const auto address = [&](Id k) { return b.nest(b.nest(at[0], extents[1], k), extents[2], at[2]); };
  const Id mine = b.load(x, b.item());
  const Id place = b.accumulator(b.index(0));
  const Id j = b.loop(extents[1]);
  const Id other = b.load(x, address(j));
  const Id a = b.select(descending, mine, other), c = b.select(descending, other, mine);
  const Id yes = b.bits(Type::boolean, 1), no = b.bits(Type::boolean, 0);
  const Id earlier = b.compare(Op::less, j, at[1]);  // of equal elements
  const Id before = b.select(sorts_before(b, a, c), yes, b.select(sorts_before(b, c, a), no, earlier));
  b.assign(place, b.add(place, b.select(before, b.index(1), b.index(0))));
  b.end(j);
  b.store(values, address(place), mine);
  b.store(indices, address(place), b.cast(at[1], Type::i32));
  return b.take();
}
bool bind_sort(const Operands& o, uint32_t, Job& job) {
  const AxisSplit s = axis_split(o);
  job.items(s.outer * s.axis * s.inner);
  for (int64_t n : {s.outer, s.axis, s.inner}) job.push(n);
  job.push_value(DType::boolean, int_attr(o.call, "descending", 0) != 0);
  job.buffers = {o.in[0], o.out[0], o.out[1]};
  return true;
}

constexpr const char* kCumsumAttrs[] = {"axis", "exclusive", "reverse"};
constexpr const char* kSortAttrs[] = {"axis", "descending"};
constexpr Form kOrderForms[] = {
    {"cumsum", "per_row", kCumsumAttrs, WEFT_DETERMINISM_THREADS, Overwrite::never, check_cumsum, only_kernel,
     build_cumsum, bind_cumsum},
    {"sort", "per_element", kSortAttrs, WEFT_DETERMINISM_DEVICES, Overwrite::never, check_sort, only_kernel,
     build_sort, bind_sort},
};

}  // namespace

std::span<const Form> order_forms() { return kOrderForms; }

}  // namespace weft::loops
