#include "loops/form.h"

// conv, conv_transpose and conv_weight_grad. All three are a sum over x[n, group, c, i...] w[group, o, c,
// k...] y[n, group, o, p...] with i = p * stride + k * dilation - before, and one of the factors is the
// result. One work item makes one element of it: its index along an axis is `at`, a loop runs over the
// indices `j` of the second operand, and the index in the first one follows from both:
//
//   conv              x at p * stride + k * dilation - before       at = p, j = k
//   conv_weight_grad  the same                                      at = k, j = p
//   conv_transpose    y at (i + before - k * dilation) / stride     at = i, j = k, where the division is
//   exact
//
// Both loads are guarded, so indices outside add zero, whatever the other operand is.
namespace weft::loops {
namespace {

using codegen::Id;
using codegen::Ids;
using codegen::LoopBuilder;
using codegen::Op;
using codegen::Type;
using codegen::type_of;

bool transposed(const weft_call& call) { return std::string_view(call.op) == "conv_transpose"; }
bool for_weight(const weft_call& call) { return std::string_view(call.op) == "conv_weight_grad"; }

Status check_conv(const weft_call& call) {
  if (call.n_inputs != 2 || call.n_outputs != 1 || !call.inputs[0] || !call.inputs[1])
    return invalid("{} has {} operands and {} results, wanted 2 and 1", call.op, call.n_inputs,
                   call.n_outputs);
  const weft_type &a = *call.inputs[0], &b = *call.inputs[1], &y = *call.outputs[0];
  if (!is_float(dtype(a)) || dtype(b) != dtype(a) || dtype(y) != dtype(a))
    return fail(Code::unsupported, "{}: got {}, {} and {}, wanted one float dtype", call.op, name(dtype(a)),
                name(dtype(b)), name(dtype(y)));
  if (a.rank < 3 || b.rank != a.rank || y.rank != a.rank)
    return invalid("{}: ranks {} and {} to {}, wanted the same and at least 3", call.op, a.rank, b.rank,
                   y.rank);
  return {};
}

Id inside(LoopBuilder& b, Id at, Id size) {
  return b.compare(Op::both, b.compare(Op::less, b.index(-1), at), b.compare(Op::less, at, size));
}

codegen::LoopKernel build_conv(const weft_call& call, uint32_t) {
  const DType t = dtype(*call.inputs[0]);
  const size_t rank = static_cast<size_t>(call.outputs[0]->rank);
  LoopBuilder b;
  const uint32_t first = b.read(t), second = b.read(t), y = b.write(t);
  const Type acc_type = codegen::accumulator_of(type_of(t));
  const Ids at = b.coordinates(b.item(), b.arguments(3 + rank - 2));
  const std::span<const Id> outer(at.begin(), 3);
  Id p = b.affine(outer, b.arguments(3)), q = b.affine(outer, b.arguments(3));
  const Id terms = b.argument(), p_step = b.argument(), q_step = b.argument();
  const Id acc = b.accumulator(b.number(acc_type, 0));
  Ids loops{b.loop(terms)};
  p = b.nest(loops[0], p_step, p), q = b.nest(loops[0], q_step, q);
  Id guard = codegen::kNone;
  for (size_t d = 3; d < at.size(); ++d) {
    const Id size = b.argument(), extent = b.argument(), before = b.argument();
    const Id at_step = b.argument(), j_step = b.argument();
    const Id j = b.loop(extent);
    Id place, there;
    if (transposed(call)) {
      const Id moved = b.binary(Op::sub, b.add(at[d], before), b.mul(j, j_step));
      place = b.binary(Op::div, moved, at_step);
      there = b.compare(Op::both, inside(b, place, size), b.compare(Op::equal, b.mul(place, at_step), moved));
    } else {
      place = b.binary(Op::sub, b.nest(at[d], at_step, b.mul(j, j_step)), before);
      there = inside(b, place, size);
    }
    guard = guard == codegen::kNone ? there : b.compare(Op::both, guard, there);
    p = b.nest(p, size, place), q = b.nest(q, extent, j);
    loops.push_back(j);
  }
  const Id product =
      b.mul(b.cast(b.load(first, p, guard), acc_type), b.cast(b.load(second, q, guard), acc_type));
  b.assign(acc, b.add(acc, product));
  while (!loops.empty()) b.end(loops.back()), loops.pop_back();
  b.store(y, b.item(), b.cast(acc, type_of(t)));
  return b.take();
}

/// n, group, o and c: their sizes, and the steps of a factor along them in units of its spatial blocks.
using Four = std::array<int64_t, 4>;
struct Factors {
  Four sizes, x, w, y;
};
Factors factors(const Operands& o) {
  const Sizes a = shape(*o.in[0]), b = shape(*o.in[1]), r = shape(*o.out[0]);
  const Sizes &x = transposed(o.call) ? r : a, &w = for_weight(o.call) ? r : b;
  const int64_t groups = int_attr(o.call, "groups", 1), c = w[1], out = w[0] / groups;
  return {{x[0], groups, out, c}, {groups * c, c, 0, 1}, {0, out * c, c, 1}, {groups * out, out, 1, 0}};
}

bool bind_conv(const Operands& o, uint32_t, Job& job) {
  const Sizes a = shape(*o.in[0]), b = shape(*o.in[1]), r = shape(*o.out[0]);
  const Sizes stride = ints_attr(o.call, "stride"), dilation = ints_attr(o.call, "dilation"),
              padding = ints_attr(o.call, "padding");
  const Factors f = factors(o);
  const Four &p = transposed(o.call) ? f.y : f.x, &q = for_weight(o.call) ? f.y : f.w;
  const size_t summed = transposed(o.call) ? 2 : for_weight(o.call) ? 0 : 3;
  Sizes extents, p_steps, q_steps;
  for (size_t d = 0; d < 4; ++d) {
    if (d == summed) continue;
    extents.push_back(f.sizes[d]), p_steps.push_back(p[d]), q_steps.push_back(q[d]);
  }
  job.items(product(r));
  job.push(extents);
  for (size_t d = 2; d < r.size(); ++d) job.push(r[d]);
  job.push(p_steps);
  job.push(q_steps);
  for (int64_t n : {f.sizes[summed], p[summed], q[summed]}) job.push(n);
  for (size_t d = 2; d < r.size(); ++d) {
    const size_t i = d - 2;
    const int64_t by_p = stride.empty() ? 1 : stride[i], by_k = dilation.empty() ? 1 : dilation[i];
    job.push(a[d]), job.push(b[d]);
    job.push(padding.empty() ? 0 : padding[2 * i]);
    job.push(for_weight(o.call) ? by_k : by_p), job.push(for_weight(o.call) ? by_p : by_k);
  }
  job.buffers = {o.in[0], o.in[1], o.out[0]};
  return true;
}

constexpr const char* kConvAttrs[] = {"dilation", "groups", "padding", "stride"};
constexpr const char* kTransposeAttrs[] = {"dilation", "groups", "output_padding", "padding", "stride"};
constexpr const char* kWeightAttrs[] = {"dilation", "groups", "kernel", "padding", "stride"};
constexpr Form kConvForms[] = {
    {"conv", "per_element", kConvAttrs, WEFT_DETERMINISM_THREADS, Overwrite::never, check_conv, only_kernel,
     build_conv, bind_conv},
    {"conv_transpose", "per_element", kTransposeAttrs, WEFT_DETERMINISM_THREADS, Overwrite::never, check_conv,
     only_kernel, build_conv, bind_conv},
    {"conv_weight_grad", "per_element", kWeightAttrs, WEFT_DETERMINISM_THREADS, Overwrite::never, check_conv,
     only_kernel, build_conv, bind_conv},
};

}  // namespace

std::span<const Form> conv_forms() { return kConvForms; }

}  // namespace weft::loops
