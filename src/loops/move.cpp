#include "loops/form.h"

// Movement: reshape, slice, pad, permute and concat; and iota. Sizes are folded into [outer, axis, inner], so
// one text serves every rank, except for permute.
namespace weft::loops {
namespace {

using codegen::Id;
using codegen::LoopBuilder;
using codegen::Op;
using codegen::type_of;

Status check_move(const weft_call& call) {
  if (call.n_inputs != 1 || call.n_outputs != 1 || !call.inputs[0])
    return invalid("{} has {} operands and {} results, wanted 1 and 1", call.op, call.n_inputs,
                   call.n_outputs);
  if (dtype(*call.inputs[0]) != dtype(*call.outputs[0]))
    return invalid("{}: from {} to {}, wanted one dtype", call.op, name(dtype(*call.inputs[0])),
                   name(dtype(*call.outputs[0])));
  return {};
}
Status check_axis(const weft_call& call) {
  WEFT_CHECK(check_move(call));
  const int64_t axis = int_attr(call, "axis", 0);
  if (axis < 0 || axis >= call.inputs[0]->rank)
    return invalid("{}: axis is {}, wanted 0 <= axis < {}", call.op, axis, call.inputs[0]->rank);
  return {};
}
/// Checks that the slice is inside x; otherwise the kernel would read past it.
Status check_slice(const weft_call& call) {
  WEFT_CHECK(check_axis(call));
  const int64_t axis = int_attr(call, "axis", 0), start = int_attr(call, "start", 0),
                step = int_attr(call, "step", 1);
  const int64_t size = call.inputs[0]->max[axis], count = call.outputs[0]->max[axis];
  if (start < 0 || step < 1) return invalid("slice: start {} and step {}, wanted >= 0 and >= 1", start, step);
  if (count > 0 && start + (count - 1) * step >= size)
    return invalid("slice: {} elements from {} by {} of an axis of {}", count, start, step, size);
  return {};
}

codegen::LoopKernel build_copy(const weft_call& call, uint32_t) {
  LoopBuilder b;
  const DType t = dtype(*call.inputs[0]);
  const uint32_t x = b.read(t), y = b.write(t);
  b.store(y, b.item(), b.load(x, b.item()));
  return b.take();
}
bool bind_copy(const Operands& o, uint32_t, Job& job) {
  job.items(product(shape(*o.out[0])));
  job.buffers = {o.in[0], o.out[0]};
  return true;
}

/// Sizes around `axis`: outer, inner of y, and the axis of x and y.
struct Split {
  int64_t outer, inner, x_axis, y_axis;
};
Split split(const Operands& o) {
  const size_t axis = static_cast<size_t>(int_attr(o.call, "axis", 0));
  const Sizes x = shape(*o.in[0]), y = shape(*o.out[0]);
  return {product(y, 0, axis), product(y, axis + 1, y.size()), x[axis], y[axis]};
}

codegen::LoopKernel build_slice(const weft_call& call, uint32_t) {
  LoopBuilder b;
  const DType t = dtype(*call.inputs[0]);
  const uint32_t x = b.read(t), y = b.write(t);
  const codegen::Ids extents = b.arguments(3);
  const codegen::Ids at = b.coordinates(b.item(), extents);
  const Id x_axis = b.argument(), start = b.argument(), step = b.argument();
  const Id along = b.nest(at[1], step, start);
  b.store(y, b.item(), b.load(x, b.nest(b.nest(at[0], x_axis, along), extents[2], at[2])));
  return b.take();
}
bool bind_slice(const Operands& o, uint32_t, Job& job) {
  const Split s = split(o);
  job.items(s.outer * s.y_axis * s.inner);
  for (int64_t n : {s.outer, s.y_axis, s.inner, s.x_axis}) job.push(n);
  job.push(int_attr(o.call, "start", 0));
  job.push(int_attr(o.call, "step", 1));
  job.buffers = {o.in[0], o.out[0]};
  return true;
}

codegen::LoopKernel build_pad(const weft_call& call, uint32_t) {
  LoopBuilder b;
  const DType t = dtype(*call.inputs[0]);
  const uint32_t x = b.read(t), y = b.write(t);
  const codegen::Ids extents = b.arguments(3);
  const codegen::Ids at = b.coordinates(b.item(), extents);
  const Id x_axis = b.argument(), before = b.argument(), value = b.argument(type_of(t));
  const Id along = b.binary(Op::sub, at[1], before);
  const Id inside =
      b.compare(Op::both, b.compare(Op::less, b.index(-1), along), b.compare(Op::less, along, x_axis));
  const Id loaded = b.load(x, b.nest(b.nest(at[0], x_axis, along), extents[2], at[2]), inside);
  b.store(y, b.item(), b.select(inside, loaded, value));
  return b.take();
}
bool bind_pad(const Operands& o, uint32_t, Job& job) {
  const Split s = split(o);
  job.items(s.outer * s.y_axis * s.inner);
  for (int64_t n : {s.outer, s.y_axis, s.inner, s.x_axis}) job.push(n);
  job.push(int_attr(o.call, "before", 0));
  job.push_value(dtype(*o.in[0]), float_attr(o.call, "value", 0));
  job.buffers = {o.in[0], o.out[0]};
  return true;
}

Status check_permute(const weft_call& call) {
  WEFT_CHECK(check_move(call));
  const Sizes axes = ints_attr(call, "axes");
  const int32_t rank = call.inputs[0]->rank;
  if (call.outputs[0]->rank != rank || (!axes.empty() && axes.size() != static_cast<size_t>(rank)))
    return invalid("permute: {} axes from rank {} to {}", axes.size(), rank, call.outputs[0]->rank);
  for (size_t d = 0; d < axes.size(); ++d)
    if (axes[d] < 0 || axes[d] >= rank || call.inputs[0]->max[axes[d]] != call.outputs[0]->max[d])
      return invalid("permute: axis {} of the result is not axis {} of x", d, axes[d]);
  return {};
}
codegen::LoopKernel build_permute(const weft_call& call, uint32_t) {
  LoopBuilder b;
  const DType t = dtype(*call.inputs[0]);
  const size_t rank = static_cast<size_t>(call.inputs[0]->rank);
  const uint32_t x = b.read(t), y = b.write(t);
  const codegen::Ids at = b.coordinates(b.item(), b.arguments(rank));
  b.store(y, b.item(), b.load(x, b.affine(at, b.arguments(rank))));
  return b.take();
}
bool bind_permute(const Operands& o, uint32_t, Job& job) {
  const Sizes x = shape(*o.in[0]), y = shape(*o.out[0]), axes = ints_attr(o.call, "axes");
  Sizes strides;
  for (size_t d = 0; d < y.size(); ++d) {
    const size_t from = axes.empty() ? y.size() - 1 - d : static_cast<size_t>(axes[d]);
    strides.push_back(product(x, from + 1, x.size()));
  }
  job.items(product(y));
  job.push(y);
  job.push(strides);
  job.buffers = {o.in[0], o.out[0]};
  return true;
}

Status check_concat(const weft_call& call) {
  if (call.n_outputs != 1 || !call.inputs[0])
    return invalid("concat has {} results, wanted 1", call.n_outputs);
  const weft_type& y = *call.outputs[0];
  const int64_t axis = int_attr(call, "axis", 0);
  if (axis < 0 || axis >= y.rank) return invalid("concat: axis is {}, wanted 0 <= axis < {}", axis, y.rank);
  int64_t total = 0;
  for (uint32_t k = 0; k < call.n_inputs; ++k) {
    const weft_type* x = call.inputs[k];
    if (!x) continue;
    if (x->rank != y.rank || dtype(*x) != dtype(y))
      return invalid("concat: operand {} is {} of rank {}, wanted {} of rank {}", k, name(dtype(*x)), x->rank,
                     name(dtype(y)), y.rank);
    total += x->max[axis];
  }
  return total == y.max[axis] ? Status()
                              : invalid("concat: {} elements into an axis of {}", total, y.max[axis]);
}
uint32_t present_operands(const weft_call& call) {
  uint32_t present = 0;
  for (uint32_t k = 0; k < call.n_inputs; ++k) present |= uint32_t{call.inputs[k] != nullptr} << k;
  return present;
}
/// Kernel k copies operand k to its place; all of them share one text.
codegen::LoopKernel build_concat(const weft_call& call, uint32_t) {
  LoopBuilder b;
  const DType t = dtype(*call.inputs[0]);
  const uint32_t x = b.read(t), y = b.write(t);
  const codegen::Ids extents = b.arguments(3);  // of x
  const codegen::Ids at = b.coordinates(b.item(), extents);
  const Id y_axis = b.argument(), start = b.argument();
  const Id to = b.nest(b.nest(at[0], y_axis, b.add(start, at[1])), extents[2], at[2]);
  b.store(y, to, b.load(x, b.item()));
  return b.take();
}
bool bind_concat(const Operands& o, uint32_t kernel, Job& job) {
  const size_t axis = static_cast<size_t>(int_attr(o.call, "axis", 0));
  const Sizes x = shape(*o.in[kernel]), y = shape(*o.out[0]);
  int64_t start = 0;
  for (uint32_t k = 0; k < kernel; ++k)
    if (o.in[k]) start += shape(*o.in[k])[axis];
  job.items(product(x));
  for (int64_t n : {product(x, 0, axis), x[axis], product(x, axis + 1, x.size()), y[axis], start})
    job.push(n);
  job.buffers = {o.in[kernel], o.out[0]};
  return true;
}

Status check_iota(const weft_call& call) {
  if (call.n_inputs != 0 || call.n_outputs != 1)
    return invalid("iota has {} operands and {} results, wanted 0 and 1", call.n_inputs, call.n_outputs);
  const DType t = dtype(*call.outputs[0]);
  return is_compute(t) && t != DType::boolean ? Status()
                                              : fail(Code::unsupported, "iota is not for {}", name(t));
}
codegen::LoopKernel build_iota(const weft_call& call, uint32_t) {
  LoopBuilder b;
  const DType t = dtype(*call.outputs[0]);
  const uint32_t y = b.write(t);
  b.store(y, b.item(), b.cast(b.cast(b.item(), codegen::Type::i32), type_of(t)));
  return b.take();
}
bool bind_iota(const Operands& o, uint32_t, Job& job) {
  job.items(product(shape(*o.out[0])));
  job.buffers = {o.out[0]};
  return true;
}

constexpr const char* kMoveShape[] = {"shape"};
constexpr const char* kSliceAttrs[] = {"axis", "start", "step", "stop"};
constexpr const char* kPadAttrs[] = {"after", "axis", "before", "value"};
constexpr const char* kAxesAttr[] = {"axes"};
constexpr const char* kAxisAttr[] = {"axis"};
constexpr const char* kIotaAttrs[] = {"dtype", "size"};
constexpr Form kMoveForms[] = {
    {"reshape", "copy", kMoveShape, WEFT_DETERMINISM_DEVICES, Overwrite::first, check_move, only_kernel,
     build_copy, bind_copy},
    {"slice", "per_element", kSliceAttrs, WEFT_DETERMINISM_DEVICES, Overwrite::never, check_slice,
     only_kernel, build_slice, bind_slice},
    {"pad", "per_element", kPadAttrs, WEFT_DETERMINISM_DEVICES, Overwrite::never, check_axis, only_kernel,
     build_pad, bind_pad},
    {"permute", "per_element", kAxesAttr, WEFT_DETERMINISM_DEVICES, Overwrite::never, check_permute,
     only_kernel, build_permute, bind_permute},
    {"concat", "per_operand", kAxisAttr, WEFT_DETERMINISM_DEVICES, Overwrite::never, check_concat,
     present_operands, build_concat, bind_concat, true, nullptr, 1},
    {"iota", "per_element", kIotaAttrs, WEFT_DETERMINISM_DEVICES, Overwrite::never, check_iota, only_kernel,
     build_iota, bind_iota},
};

}  // namespace

std::span<const Form> move_forms() { return kMoveForms; }

}  // namespace weft::loops
