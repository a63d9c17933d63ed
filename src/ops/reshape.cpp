#include "ops/shared/rules.h"

namespace weft::ops {

struct ReshapeAttrs {
  Shape shape;
  static constexpr auto fields = ir::fields("shape", &ReshapeAttrs::shape);
};

// `shape` with a -1 replaced by the size that preserves the number of elements.
static Result<Shape> sizes_of(const TensorType& x, const Shape& shape) {
  Dim known = 1;
  size_t unknown = shape.size();
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == Dim(-1) && unknown < shape.size())
      return invalid("reshape: at most one size may be -1, got {}", text(shape));
    if (shape[i] == Dim(-1)) {
      unknown = i;
      continue;
    }
    if (shape[i].min() < 0)
      return invalid(
          "reshape: sizes must be 0 or more, or -1 for the one that follows from the others, got {}",
          text(shape));
    known = known * shape[i];
  }
  const Dim have = element_count(x.shape);
  if (unknown == shape.size() && have == known) return shape;
  if (unknown == shape.size())
    return invalid("reshape: {} has {} elements, {} has {}", text(x), have.text(), text(shape), known.text());
  if (known == Dim(0))
    return invalid("reshape: any size could stand for the -1 in {}, beside a size of 0; say which is meant",
                   text(shape));
  const auto size = exact_div(have, known);
  if (!size)
    return invalid("reshape: {} has {} elements, which {} does not divide: no size fits the -1 in {}",
                   text(x), have.text(), known.text(), text(shape));
  Shape whole = shape;
  whole[unknown] = *size;
  return whole;
}

static Result<TensorType> infer(ir::Types in, const ReshapeAttrs& a) {
  WEFT_TRY(Shape shape, sizes_of(in[0], a.shape));
  return TensorType{in[0].dtype, std::move(shape)};
}

static ReshapeAttrs settle(ir::Types in, const ReshapeAttrs& a) { return {sizes_of(in[0], a.shape).value()}; }

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ReshapeAttrs&) {
  return {b.reshape(ctx.dout(0), ctx.in_type(0).shape)};
}

static constexpr ir::Op<ReshapeAttrs> spec = {
    .name = "reshape",
    .doc =
        "The same elements, in row-major order, under another shape.\n\n"
        "Shape    `shape`; it has as many elements as `x`. One size may be -1: the one that follows from the "
        "others.\n"
        "DType    any.\n"
        "Grad     needs nothing.\n"
        "Errors   invalid_argument when the element counts differ, when the other sizes do not divide the\n"
        "         number of elements, for a second -1, and for a -1 beside a size of 0.",
    .inputs = {"x"},
    .traits = ir::Trait::movement,
    .infer = infer,
    .settle = settle,
    .grad = grad,
};
extern constinit const ir::OpDef reshape = ir::define<spec>();

}  // namespace weft::ops
