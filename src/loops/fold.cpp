#include <cmath>
#include <limits>

#include "loops/fold.h"

// Folds: sum, prod, max, min and matmul. One work item makes one output element with its own loops, in the
// order of the axes, so the result does not depend on the number of items that run at once. f16 and bf16
// accumulate in f32.
namespace weft::loops {
namespace {

using codegen::Id;
using codegen::Ids;
using codegen::LoopBuilder;
using codegen::Op;
using codegen::Type;
using codegen::type_of;

Status check_one_input(const weft_call& call) {
  if (call.n_inputs != 1 || call.n_outputs != 1 || !call.inputs[0])
    return invalid("{} has {} operands and {} results, wanted 1 and 1", call.op, call.n_inputs,
                   call.n_outputs);
  return {};
}

}  // namespace

Status check_fold(const weft_call& call) {
  WEFT_CHECK(check_one_input(call));
  const DType t = dtype(*call.inputs[0]);
  if (!is_compute(t) || t == DType::boolean)
    return fail(Code::unsupported, "{} is not for {}", call.op, name(t));
  for (int64_t axis : ints_attr(call, "axes"))
    if (axis < 0 || axis >= call.inputs[0]->rank)
      return invalid("{}: axes has {}, wanted 0 <= axis < {}", call.op, axis, call.inputs[0]->rank);
  return {};
}

namespace {

/// Merges adjacent axes of one kind, by rank and `axes` alone, never by sizes.
struct Group {
  size_t begin, end;
  bool folded;
};
SmallVector<Group, 8> groups(const weft_call& call) {
  const Sizes axes = ints_attr(call, "axes");
  SmallVector<Group, 8> all;
  for (int32_t d = 0; d < call.inputs[0]->rank; ++d) {
    const bool folded = axes.empty() || std::find(axes.begin(), axes.end(), d) != axes.end();
    const size_t at = static_cast<size_t>(d);
    if (!all.empty() && all.back().folded == folded)
      all.back().end = at + 1;
    else
      all.push_back({at, at + 1, folded});
  }
  return all;
}

/// The least or the largest integer of a type, as bits, since 2^64 - 1 is no double.
template <class T>
uint64_t limit(bool largest) {
  return static_cast<uint64_t>(largest ? std::numeric_limits<T>::max() : std::numeric_limits<T>::min());
}
uint64_t extreme(DType t, bool largest) {
  if (t == DType::i32) return limit<int32_t>(largest);
  if (t == DType::i64) return limit<int64_t>(largest);
  return t == DType::u32 ? limit<uint32_t>(largest) : limit<uint64_t>(largest);
}

}  // namespace

bool is_fold(std::string_view op) { return op == "sum" || op == "prod" || op == "max" || op == "min"; }
Id fold_start(LoopBuilder& b, std::string_view op, DType t) {
  const Type acc_type = codegen::accumulator_of(type_of(t));
  if (op == "sum" || op == "prod") return b.number(acc_type, op == "prod");
  const bool largest = op == "min";
  return is_float(t) ? b.number(acc_type, largest ? INFINITY : -INFINITY)
                     : b.bits(acc_type, extreme(t, largest));
}
Id fold_step(LoopBuilder& b, std::string_view op, Id total, Id v) {
  if (op == "sum") return b.add(total, v);
  if (op == "prod") return b.mul(total, v);
  return b.binary(op == "max" ? Op::max : Op::min, total, v);
}

namespace {

codegen::LoopKernel build_fold(const weft_call& call, uint32_t) {
  const DType t = dtype(*call.inputs[0]);
  size_t kept = 0, folded = 0;
  for (const Group& g : groups(call)) ++(g.folded ? folded : kept);
  LoopBuilder b;
  const uint32_t x = b.read(t), y = b.write(t);
  const Ids kept_extents = b.arguments(kept), kept_strides = b.arguments(kept);
  const Ids extents = b.arguments(folded), strides = b.arguments(folded);
  Id at = b.affine(b.coordinates(b.item(), kept_extents), kept_strides);
  const Id acc = b.accumulator(fold_start(b, call.op, t));
  Ids loops;
  for (size_t i = 0; i < folded; ++i) {
    loops.push_back(b.loop(extents[i]));
    at = b.nest(loops.back(), strides[i], at);
  }
  b.assign(acc, fold_step(b, call.op, acc, b.cast(b.load(x, at), b.type(acc))));
  while (!loops.empty()) b.end(loops.back()), loops.pop_back();
  b.store(y, b.item(), b.cast(acc, type_of(t)));
  return b.take();
}

bool bind_fold(const Operands& o, uint32_t, Job& job) {
  const Sizes in = shape(*o.in[0]);
  Sizes extents[2], strides[2];
  for (const Group& g : groups(o.call)) {
    extents[g.folded].push_back(product(in, g.begin, g.end));
    strides[g.folded].push_back(product(in, g.end, in.size()));
  }
  job.items(product(extents[0]));
  for (int folded = 0; folded < 2; ++folded) job.push(extents[folded]), job.push(strides[folded]);
  job.buffers = {o.in[0], o.out[0]};
  return true;
}

}  // namespace

Status check_matmul(const weft_call& call) {
  if (call.n_inputs != 2 || call.n_outputs != 1 || !call.inputs[0] || !call.inputs[1])
    return invalid("matmul has {} operands and {} results, wanted 2 and 1", call.n_inputs, call.n_outputs);
  const DType t = dtype(*call.inputs[0]);
  if (!is_float(t)) return fail(Code::unsupported, "matmul is for floats only, got {}", name(t));
  if (dtype(*call.inputs[1]) != t || dtype(*call.outputs[0]) != t)
    return fail(Code::unsupported, "matmul: got {}, {} and {}, wanted one dtype", name(t),
                name(dtype(*call.inputs[1])), name(dtype(*call.outputs[0])));
  const int32_t ra = call.inputs[0]->rank, rb = call.inputs[1]->rank, ry = call.outputs[0]->rank;
  if (ra < 2 || rb < 2 || ry != std::max(ra, rb))
    return invalid("matmul: ranks {} and {} to {}, wanted >= 2", ra, rb, ry);
  return {};
}

namespace {

codegen::LoopKernel build_matmul(const weft_call& call, uint32_t) {
  const DType t = dtype(*call.inputs[0]);
  const size_t rank = static_cast<size_t>(call.outputs[0]->rank);
  LoopBuilder b;
  const uint32_t x = b.read(t), w = b.read(t), y = b.write(t);
  const Type acc_type = codegen::accumulator_of(type_of(t));
  // Strides of a and of b along every axis of y: 0 along axes that they lack, and along broadcast ones.
  const Ids at = b.coordinates(b.item(), b.arguments(rank));
  const Id a_row = b.affine(at, b.arguments(rank)), b_column = b.affine(at, b.arguments(rank));
  const Id depth = b.argument(), a_step = b.argument(), b_step = b.argument();
  const Id acc = b.accumulator(b.number(acc_type, 0));
  const Id k = b.loop(depth);
  const Id p = b.cast(b.load(x, b.nest(k, a_step, a_row)), acc_type);
  const Id q = b.cast(b.load(w, b.nest(k, b_step, b_column)), acc_type);
  b.assign(acc, b.add(acc, b.mul(p, q)));
  b.end(k);
  b.store(y, b.item(), b.cast(acc, type_of(t)));
  return b.take();
}

/// Strides along the leading axes of y; the two last entries are left 0.
Sizes batch_strides(std::span<const int64_t> in, size_t rank) {
  Sizes strides(rank, 0);
  int64_t stride = in[in.size() - 1] * in[in.size() - 2];
  for (size_t d = in.size() - 2; d-- > 0;) {
    strides[d + rank - in.size()] = in[d] == 1 ? 0 : stride;
    stride *= in[d];
  }
  return strides;
}

bool bind_matmul(const Operands& o, uint32_t, Job& job) {
  const Sizes a = shape(*o.in[0]), w = shape(*o.in[1]), y = shape(*o.out[0]);
  const bool ta = int_attr(o.call, "transpose_a", 0) != 0, tb = int_attr(o.call, "transpose_b", 0) != 0;
  const size_t rank = y.size();
  const int64_t a_last = a.back(), w_last = w.back();
  Sizes sa = batch_strides(a, rank), sb = batch_strides(w, rank);
  sa[rank - 2] = ta ? 1 : a_last;
  sb[rank - 1] = tb ? w_last : 1;
  job.items(product(y));
  job.push(y);
  job.push(sa);
  job.push(sb);
  job.push(ta ? a[a.size() - 2] : a_last);
  job.push(ta ? a_last : 1);
  job.push(tb ? 1 : w_last);
  job.buffers = {o.in[0], o.in[1], o.out[0]};
  return true;
}

constexpr const char* kFoldAttrs[] = {"axes", "keep"};
constexpr const char* kMatmulAttrs[] = {"transpose_a", "transpose_b"};
constexpr Form kFoldForms[] = {
    {"sum", "per_element", kFoldAttrs, WEFT_DETERMINISM_THREADS, Overwrite::never, check_fold, only_kernel,
     build_fold, bind_fold},
    {"prod", "per_element", kFoldAttrs, WEFT_DETERMINISM_THREADS, Overwrite::never, check_fold, only_kernel,
     build_fold, bind_fold},
    {"max", "per_element", kFoldAttrs, WEFT_DETERMINISM_DEVICES, Overwrite::never, check_fold, only_kernel,
     build_fold, bind_fold},
    {"min", "per_element", kFoldAttrs, WEFT_DETERMINISM_DEVICES, Overwrite::never, check_fold, only_kernel,
     build_fold, bind_fold},
    {"matmul", "per_element", kMatmulAttrs, WEFT_DETERMINISM_THREADS, Overwrite::never, check_matmul,
     only_kernel, build_matmul, bind_matmul},
};

}  // namespace

std::span<const Form> fold_forms() { return kFoldForms; }

}  // namespace weft::loops
