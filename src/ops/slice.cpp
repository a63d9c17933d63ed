#include "ir/end.h"
#include "ops/shared/rules.h"

namespace weft::ops {

struct SliceAttrs {
  int64_t axis = 0;
  Dim start = 0;
  Dim stop = ir::kEnd;
  int64_t step = 1;
  static constexpr auto fields = ir::fields("axis", &SliceAttrs::axis, "start", &SliceAttrs::start, "stop",
                                            &SliceAttrs::stop, "step", &SliceAttrs::step);
};

// One bound, counted from the front and within the axis: Python's rule.
static Result<Dim> resolve_bound(const char* what, Dim bound, Dim size) {
  if (bound.min() < 0 && bound.max() >= 0)
    return invalid(
        "slice: {} {} is from {} to {}, and only negative bounds count from the end; keep it on one side",
        what, bound.text(), bound.min(), bound.max());
  return bound.min() >= 0 ? min(bound, size) : max(bound + size, 0);
}

// The attributes with `axis`, `start` and `stop` counted from the front, and start <= stop <= size.
static Result<SliceAttrs> resolved(const TensorType& x, const SliceAttrs& a) {
  WEFT_TRY(const int64_t axis, ir::resolve_axis("slice", a.axis, x.rank()));
  const Dim size = x.shape[static_cast<size_t>(axis)];
  constexpr int64_t kMost = int64_t{1} << 40;  // longer than any axis, and far from overflow
  if (a.step < 1 || a.step > kMost) return invalid("slice: step must be in 1..{}, got {}", kMost, a.step);
  WEFT_TRY(const Dim start, resolve_bound("start", a.start, size));
  WEFT_TRY(const Dim stop, resolve_bound("stop", a.stop, size));
  return SliceAttrs{axis, start, max(start, stop), a.step};
}

static Result<TensorType> infer(ir::Types in, const SliceAttrs& attrs) {
  WEFT_TRY(const SliceAttrs a, resolved(in[0], attrs));
  TensorType out = in[0];
  out.shape[static_cast<size_t>(a.axis)] = floor_div(max(a.stop - a.start, 0) + (a.step - 1), a.step);
  return out;
}

static SliceAttrs settle(ir::Types in, const SliceAttrs& a) { return resolved(in[0], a).value(); }

// Elements outside the slice get zero. With known bounds dy is padded; with a step, its elements are spread
// first. If the padding depends on a symbol, they are scattered.
static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const SliceAttrs& attrs) {
  const SliceAttrs a = resolved(ctx.in_type(0), attrs).value();  // infer has checked them
  const auto& x = ctx.in_type(0).shape;
  const auto axis = static_cast<size_t>(a.axis);
  auto dy = ctx.dout(0);
  const Dim n = dy.shape()[axis];
  const bool known = x[axis].is_const() && a.start.is_const() && a.stop.is_const();
  if (!known && (a.step > 1 || (x[axis] - a.stop).min() < 0 || n != a.stop - a.start)) {
    const auto number = [&](Dim d) { return b.full(1, {}, DType::i32, d); };
    const auto steps = b.mul(b.one("iota", {}, {{"size", Shape{n}}}), number(a.step));
    return {b.scatter_add(b.full(0, x, dy.dtype()), b.add(steps, number(a.start)), dy, a.axis, 0)};
  }
  Dim covered = n;
  if (a.step > 1) {  // [.., n, ..] -> [.., n, 1, ..] -> pad the 1 to `step` -> [.., n * step, ..]
    Shape split = dy.shape(), joined = dy.shape();
    split.insert(axis + 1, Dim(1));
    joined[axis] = n * Dim(a.step);
    dy = b.one("pad", {b.reshape(dy, split)}, {{"axis", a.axis + 1}, {"after", Shape{a.step - 1}}});
    covered = min(joined[axis], x[axis] - a.start);  // the last step may reach past the end
    dy = b.one("slice", {b.reshape(dy, joined)}, {{"axis", a.axis}, {"stop", Shape{covered}}});
  }
  return {
      b.one("pad", {dy},
            {{"axis", a.axis}, {"before", Shape{a.start}}, {"after", Shape{x[axis] - a.start - covered}}})};
}

static constexpr ir::Op<SliceAttrs> spec = {
    .name = "slice",
    .doc =
        "Elements start, start + step, ... below stop, along one axis; without a stop, up to the end.\n\n"
        "Shape    `axis` has ceil((stop - start) / step) elements, or none. Negative bounds count from the "
        "end, and\n"
        "         bounds outside of the axis mean its ends, as in Python: start -3 is the last three "
        "elements.\n"
        "DType    any.\n"
        "Grad     needs nothing.\n"
        "Errors   invalid_argument unless step >= 1, and for a symbolic bound that may be negative or not.",
    .inputs = {"x"},
    .traits = ir::Trait::movement,
    .infer = infer,
    .settle = settle,
    .grad = grad,
};
extern constinit const ir::OpDef slice = ir::define<spec>();

}  // namespace weft::ops
