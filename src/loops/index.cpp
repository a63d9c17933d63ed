#include <cmath>
#include <limits>

#include "loops/fold.h"

// Ops whose addresses come from data, and random bits.
//
// A rendered kernel can't report an index outside its axis: a dispatch has no error channel. But it never
// accesses memory outside a buffer: gather returns NaN (the smallest value for integers, false for bool), and
// scatter and scatter_add skip that update.
namespace weft::loops {
namespace {

using codegen::Id;
using codegen::Ids;
using codegen::LoopBuilder;
using codegen::Op;
using codegen::Type;
using codegen::type_of;

Status check_indexed(const weft_call& call, uint32_t n_inputs) {
  if (call.n_inputs != n_inputs || call.n_outputs != 1)
    return invalid("{} has {} operands and {} results, wanted {} and 1", call.op, call.n_inputs,
                   call.n_outputs, n_inputs);
  for (uint32_t k = 0; k < n_inputs; ++k)
    if (!call.inputs[k]) return invalid("{}: operand {} is absent", call.op, k);
  const DType index = dtype(*call.inputs[1]), t = dtype(*call.inputs[0]);
  if (index != DType::i32 && index != DType::i64)
    return invalid("{}: index is {}, wanted i32 or i64", call.op, name(index));
  const int64_t axis = int_attr(call, "axis", 0), batch = int_attr(call, "batch", 0);
  if (batch < 0 || axis < batch || axis >= call.inputs[0]->rank || batch > call.inputs[1]->rank)
    return invalid("{}: axis {} and batch {} for ranks {} and {}, wanted batch <= axis < rank", call.op, axis,
                   batch, call.inputs[0]->rank, call.inputs[1]->rank);
  if (dtype(*call.outputs[0]) != t)
    return invalid("{}: result is {}, wanted {}", call.op, name(dtype(*call.outputs[0])), name(t));
  return {};
}
Status check_gather(const weft_call& call) { return check_indexed(call, 2); }
Status check_scatter(const weft_call& call) {
  WEFT_CHECK(check_indexed(call, 3));
  const DType t = dtype(*call.inputs[0]);
  if (dtype(*call.inputs[2]) != t)
    return invalid("{}: updates are {}, wanted {}", call.op, name(dtype(*call.inputs[2])), name(t));
  return {};
}
Status check_scatter_add(const weft_call& call) {
  WEFT_CHECK(check_scatter(call));
  const DType t = dtype(*call.inputs[0]);
  return is_compute(t) && t != DType::boolean ? Status()
                                              : fail(Code::unsupported, "scatter_add is not for {}", name(t));
}

/// x is [batch, middle, axis, rest]; index is [batch, count].
struct Fold {
  int64_t batch, middle, axis, rest, count;
};
Fold fold(const Operands& o) {
  const size_t axis = static_cast<size_t>(int_attr(o.call, "axis", 0));
  const size_t batch = static_cast<size_t>(int_attr(o.call, "batch", 0));
  const Sizes x = shape(*o.in[0]), index = shape(*o.in[1]);
  return {product(x, 0, batch), product(x, batch, axis), x[axis], product(x, axis + 1, x.size()),
          product(index, batch, index.size())};
}

}  // namespace

Id outside_value(LoopBuilder& b, DType t) {
  if (is_float(t)) return b.number(type_of(t), NAN);
  if (t == DType::i32) return b.number(Type::i32, std::numeric_limits<int32_t>::min());
  if (t == DType::i64) return b.number(Type::i64, static_cast<double>(std::numeric_limits<int64_t>::min()));
  return b.number(type_of(t), t == DType::i8 ? -128 : 0);
}

namespace {

codegen::LoopKernel build_gather(const weft_call& call, uint32_t) {
  LoopBuilder b;
  const DType t = dtype(*call.inputs[0]), index_type = dtype(*call.inputs[1]);
  const uint32_t x = b.read(t), index = b.read(index_type), y = b.write(t);
  const Ids extents = b.arguments(4);  // of y: batch, middle, count, rest
  const Id axis = b.argument();
  const Ids at = b.coordinates(b.item(), extents);
  const Id wide = b.load(index, b.nest(at[0], extents[2], at[2]));
  // Compared before it is narrowed: an i64 index must not wrap into the axis.
  const Type it = type_of(index_type);
  const Id inside = b.compare(Op::both, b.compare(Op::less, b.number(it, -1), wide),
                              b.compare(Op::less, wide, b.cast(axis, it)));
  const Id row = b.nest(b.nest(at[0], extents[1], at[1]), axis, b.cast(wide, Type::index));
  const Id value = b.load(x, b.nest(row, extents[3], at[3]), inside);
  b.store(y, b.item(), b.select(inside, value, outside_value(b, t)));
  return b.take();
}
bool bind_gather(const Operands& o, uint32_t, Job& job) {
  const Fold f = fold(o);
  job.items(f.batch * f.middle * f.count * f.rest);
  for (int64_t n : {f.batch, f.middle, f.count, f.rest, f.axis}) job.push(n);
  job.buffers = {o.in[0], o.in[1], o.out[0]};
  return true;
}

/// Each element of y searches all indices for its own: no atomics, and always in the order of i.
codegen::LoopKernel build_scatter(const weft_call& call, uint32_t) {
  const bool adds = std::string_view(call.op) == "scatter_add";
  LoopBuilder b;
  const DType t = dtype(*call.inputs[0]), index_type = dtype(*call.inputs[1]);
  const uint32_t x = b.read(t), index = b.read(index_type), updates = b.read(t), y = b.write(t);
  const Ids extents = b.arguments(4);  // of y: batch, middle, axis, rest
  const Id count = b.argument();
  const Ids at = b.coordinates(b.item(), extents);
  const Type acc_type = adds ? codegen::accumulator_of(type_of(t)) : type_of(t), it = type_of(index_type);
  const Id mine = b.cast(at[2], it), row = b.nest(at[0], extents[1], at[1]);
  const Id acc = b.accumulator(b.cast(b.load(x, b.item()), acc_type));
  const Id i = b.loop(count);
  const Id hit = b.compare(Op::equal, b.load(index, b.nest(at[0], count, i)), mine);
  const Id update = b.load(updates, b.nest(b.nest(row, count, i), extents[3], at[3]), hit);
  const Id v = b.cast(update, acc_type);
  b.assign(acc, b.select(hit, adds ? b.add(acc, v) : v, acc));
  b.end(i);
  b.store(y, b.item(), b.cast(acc, type_of(t)));
  return b.take();
}
bool bind_scatter(const Operands& o, uint32_t, Job& job) {
  const Fold f = fold(o);
  job.items(f.batch * f.middle * f.axis * f.rest);
  for (int64_t n : {f.batch, f.middle, f.axis, f.rest, f.count}) job.push(n);
  job.buffers = {o.in[0], o.in[1], o.in[2], o.out[0]};
  return true;
}

Status check_random(const weft_call& call) {
  if (call.n_inputs != 1 || call.n_outputs != 2 || !call.inputs[0])
    return invalid("random_bits has {} operands and {} results, wanted 1 and 2", call.n_inputs,
                   call.n_outputs);
  if (dtype(*call.inputs[0]) != DType::u64 || dtype(*call.outputs[1]) != DType::u64)
    return invalid("random_bits: state is {}, next is {}, wanted u64", name(dtype(*call.inputs[0])),
                   name(dtype(*call.outputs[1])));
  if (product(max_shape(*call.inputs[0])) != 2 || product(max_shape(*call.outputs[1])) != 2)
    return invalid("random_bits: state and next must have 2 elements");
  if (dtype(*call.outputs[0]) != DType::u32)
    return invalid("random_bits: bits are {}, wanted u32", name(dtype(*call.outputs[0])));
  return {};
}

// Two kernels, in this order: `next` may overwrite `state`, which every item of the first one reads.
enum RandomKernel : uint32_t { kBits = 0, kNext = 1 };
uint32_t needed_random(const weft_call&) { return 1u << kBits | 1u << kNext; }

codegen::LoopKernel build_random(const weft_call&, uint32_t kernel) {
  LoopBuilder b;
  const uint32_t state = b.read(DType::u64), y = b.write(kernel == kBits ? DType::u32 : DType::u64);
  if (kernel == kBits) {
    const Id key = b.load(state, b.index(0)), counter = b.load(state, b.index(1)), four = b.index(4);
    const Id block = b.cast(b.binary(Op::div, b.item(), four), Type::u64);
    b.store(y, b.item(), b.philox(key, b.add(counter, block), b.binary(Op::mod, b.item(), four)));
  } else {
    const Id blocks = b.argument(Type::u64), key = b.load(state, b.index(0));
    const Id counter = b.add(b.load(state, b.index(1)), blocks);
    b.store(y, b.index(0), key);
    b.store(y, b.index(1), counter);
  }
  return b.take();
}
bool bind_random(const Operands& o, uint32_t kernel, Job& job) {
  const int64_t n = product(shape(*o.out[0]));
  job.items(kernel == kBits ? n : 1);
  if (kernel == kNext) {
    const int64_t blocks = (n + 3) / 4;
    job.push(blocks), job.push(blocks >> 32);
  }
  job.buffers = {o.in[0], o.out[kernel == kBits ? 0 : 1]};
  return true;
}

constexpr const char* kIndexAttrs[] = {"axis", "batch"};
constexpr const char* kIndexShape[] = {"shape"};
constexpr Form kIndexForms[] = {
    {"gather", "per_element", kIndexAttrs, WEFT_DETERMINISM_DEVICES, Overwrite::never, check_gather,
     only_kernel, build_gather, bind_gather},
    {"scatter", "per_element", kIndexAttrs, WEFT_DETERMINISM_DEVICES, Overwrite::first, check_scatter,
     only_kernel, build_scatter, bind_scatter},
    {"scatter_add", "per_element", kIndexAttrs, WEFT_DETERMINISM_THREADS, Overwrite::first, check_scatter_add,
     only_kernel, build_scatter, bind_scatter},
    {"random_bits", "per_element", kIndexShape, WEFT_DETERMINISM_DEVICES, Overwrite::first, check_random,
     needed_random, build_random, bind_random},
};

}  // namespace

std::span<const Form> index_forms() { return kIndexForms; }

}  // namespace weft::loops
