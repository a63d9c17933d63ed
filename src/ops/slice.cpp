#include "ir/rules.h"

namespace weft::ops {

struct SliceAttrs {
  int64_t axis = 0;
  Dim start = 0;
  Dim stop = 0;
  int64_t step = 1;
  static constexpr auto fields = ir::fields("axis", &SliceAttrs::axis, "start", &SliceAttrs::start, "stop",
                                            &SliceAttrs::stop, "step", &SliceAttrs::step);
};

static Result<TensorType> infer(ir::Types in, const SliceAttrs& a) {
  WEFT_TRY(const int64_t axis, ir::resolve_axis("slice", a.axis, in[0].rank()));
  const Dim size = in[0].shape[static_cast<size_t>(axis)];
  constexpr int64_t kMost = int64_t{1} << 40;  // longer than any axis, and far from where sums wrap around
  if (a.step < 1 || a.step > kMost) return invalid("slice: step must be in 1..{}, got {}", kMost, a.step);
  if (a.start.min() < 0 || (size - a.stop).min() < 0 || (a.stop - a.start).min() < 0)
    return invalid("slice: wants 0 <= start <= stop <= {}, got start {} and stop {}", size.text(),
                   a.start.text(), a.stop.text());
  TensorType out = in[0];
  out.shape[static_cast<size_t>(axis)] = floor_div(a.stop - a.start + (a.step - 1), a.step);
  return out;
}

// The elements that were left out get zero: pad back. With a step, the kept ones move apart first.
static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const SliceAttrs& a) {
  const auto& x = ctx.in_type(0).shape;
  const auto axis = static_cast<size_t>(a.axis < 0 ? a.axis + static_cast<int64_t>(x.size()) : a.axis);
  auto dy = ctx.dout(0);
  Dim covered = dy.shape()[axis];
  if (a.step > 1) {  // [.., n, ..] -> [.., n, 1, ..] -> pad the 1 to `step` -> [.., n * step, ..]
    Shape split = dy.shape(), joined = dy.shape();
    split.insert(axis + 1, Dim(1));
    covered = joined[axis] = joined[axis] * Dim(a.step);
    dy = b.one("pad", {b.reshape(dy, split)},
               {{"axis", static_cast<int64_t>(axis) + 1}, {"after", Shape{a.step - 1}}});
    dy = b.reshape(dy, joined);
    const Dim room = x[axis] - a.start;  // the last step may reach past the end
    if ((covered - room).max() > 0) {
      dy = b.one("slice", {dy}, {{"axis", static_cast<int64_t>(axis)}, {"stop", Shape{room}}});
      covered = room;
    }
  }
  return {b.one("pad", {dy},
                {{"axis", static_cast<int64_t>(axis)},
                 {"before", Shape{a.start}},
                 {"after", Shape{x[axis] - a.start - covered}}})};
}

static constexpr ir::Op<SliceAttrs> spec = {
    .name = "slice",
    .doc =
        "Elements start, start + step, ... below stop, along one axis.\n\n"
        "Shape    `axis` has ceil((stop - start) / step) elements.\n"
        "DType    any.\n"
        "Grad     needs nothing.\n"
        "Errors   invalid_argument unless 0 <= start <= stop <= size and step >= 1.",
    .inputs = {"x"},
    .traits = ir::Trait::movement,
    .infer = infer,
    .grad = grad,
};
extern constinit const ir::OpDef slice = ir::define<spec>();

}  // namespace weft::ops
