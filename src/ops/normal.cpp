#include <cmath>
#include <numbers>

#include "ops/shared/pieces.h"

namespace weft::ops {

struct NormalAttrs {
  double mean = 0;
  double deviation = 1;
  Shape shape;
  DType dtype = DType::f32;
  static constexpr auto fields = ir::fields("mean", &NormalAttrs::mean, "deviation", &NormalAttrs::deviation,
                                            "shape", &NormalAttrs::shape, "dtype", &NormalAttrs::dtype);
};

static Result<std::vector<TensorType>> infer(ir::Types in, const NormalAttrs& a) {
  if (!std::isfinite(a.mean) || !std::isfinite(a.deviation) || a.deviation < 0)
    return invalid("normal: wants a finite mean and a finite deviation >= 0, got {} and {}", a.mean,
                   a.deviation);
  return ir::infer_random("normal", in, a.shape, a.dtype);
}

// Box and Muller: the first coordinate of a point with exponential squared distance and uniform direction.
// The distance uses 1 - u in (0, 1], whose logarithm is finite.
static ir::ValueList decompose(ir::Builder& b, ir::Values in, const NormalAttrs& a) {
  Shape pairs = a.shape;
  pairs.push_back(2);
  const auto drawn = ir::unit_uniform(b, in[0], pairs, a.dtype);
  const auto half = [&](int64_t i) {
    const Attr attrs[] = {{"axis", int64_t{-1}}, {"start", Shape{i}}, {"stop", Shape{i + 1}}};
    return b.reshape(b.one("slice", {drawn.y}, {attrs[0], attrs[1], attrs[2]}), a.shape);
  };
  const auto distance = b.sqrt(b.mul(b.log(b.sub(1, half(0))), -2));
  const auto direction = b.cos(b.mul(half(1), 2 * std::numbers::pi));
  const auto y = b.add(b.mul(b.mul(distance, direction), a.deviation), a.mean);
  return {b.cast(y, a.dtype), drawn.next};
}

static constexpr ir::Op<NormalAttrs> spec = {
    .name = "normal",
    .doc =
        "Draws numbers from a normal distribution, and advances the random state.\n\n"
        "Shape    state u64[2] = key, counter, advanced in place; result `shape`.\n"
        "DType    `dtype`, a float; f16 and bf16 compute in f32.\n"
        "Numerics mean + deviation sqrt(-2 log(1 - u)) cos(2 pi v), u and v as uniform draws them: equal on "
        "every backend\n"
        "         but for the rounding of that line. The largest distance from the mean is 5.7 deviations, "
        "8.5 "
        "in f64.\n"
        "Grad     none: it has no float operand.\n"
        "Errors   invalid_argument unless mean and deviation are finite, and deviation is not negative.\n"
        "Source   Box and Muller, A note on the generation of random normal deviates (1958).",
    .inputs = {"state"},
    .outputs = {"y", "next"},
    .traits = ir::Trait::random,
    .updates = {ir::UpdateRule{1, 0}},
    .differentiable = false,
    .infer_many = infer,
    .decompose_many = decompose,
};
extern constinit const ir::OpDef normal = ir::define<spec>();

}  // namespace weft::ops
