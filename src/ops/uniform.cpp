#include <limits>

#include "base/element.h"
#include "ops/shared/pieces.h"

namespace weft::ops {

struct UniformAttrs {
  double low = 0;
  double high = 1;
  Shape shape;
  DType dtype = DType::f32;
  static constexpr auto fields = ir::fields("low", &UniformAttrs::low, "high", &UniformAttrs::high, "shape",
                                            &UniformAttrs::shape, "dtype", &UniformAttrs::dtype);
};

static Result<std::vector<TensorType>> infer(ir::Types in, const UniformAttrs& a) {
  if (!(a.low < a.high) || !(a.high - a.low <= std::numeric_limits<double>::max()))
    return invalid("uniform: low must be less than high, both finite, got {} and {}", a.low, a.high);
  for (const double end : {a.low, a.high})
    if (is_float(a.dtype) && !may_stand_for(a.dtype, end)) return cannot_hold("uniform", a.dtype, end);
  return ir::infer_random("uniform", in, a.shape, a.dtype);
}

// Values that round up to `high` become `low`: the range is half open.
static ir::ValueList decompose(ir::Builder& b, ir::Values in, const UniformAttrs& a) {
  const auto drawn = ir::unit_uniform(b, in[0], a.shape, a.dtype);
  const auto y = b.cast(b.add(b.mul(drawn.y, a.high - a.low), a.low), a.dtype);
  return {b.where(b.less(y, a.high), y, a.low), drawn.next};
}

static constexpr ir::Op<UniformAttrs> spec = {
    .name = "uniform",
    .doc =
        "Draws numbers from [low, high), each as likely as any other, and advances the random state.\n\n"
        "Shape    state u64[2] = key, counter, advanced in place; result `shape`.\n"
        "DType    `dtype`, a float; f16 and bf16 compute in f32.\n"
        "Numerics low + (high - low) u, where u has 53 random bits for f64 and 24 for all others, from "
        "random_bits:\n"
        "         equal on every backend but for the rounding of that line.\n"
        "Grad     none: it has no float operand.\n"
        "Errors   invalid_argument unless low < high, both finite and numbers of `dtype`.",
    .inputs = {"state"},
    .outputs = {"y", "next"},
    .traits = ir::Trait::random,
    .updates = {ir::UpdateRule{1, 0}},
    .differentiable = false,
    .infer_many = infer,
    .decompose_many = decompose,
};
extern constinit const ir::OpDef uniform = ir::define<spec>();

}  // namespace weft::ops
