#include "ops/shared/rules.h"

namespace weft::ops {

struct RandomBitsAttrs {
  Shape shape;
  static constexpr auto fields = ir::fields("shape", &RandomBitsAttrs::shape);
};

static Result<std::vector<TensorType>> infer(ir::Types in, const RandomBitsAttrs& a) {
  if (in[0].dtype != DType::u64 || !(in[0].shape == Shape{2}))
    return invalid("random_bits: state must be u64[2] (key, counter), got {}", text(in[0]));
  return std::vector<TensorType>{{DType::u32, a.shape}, in[0]};
}

static constexpr ir::Op<RandomBitsAttrs> spec = {
    .name = "random_bits",
    .doc =
        "Draws u32 words from a counter-based generator, and advances its state.\n\n"
        "Shape    state u64[2] = key, counter; result `shape`.\n"
        "DType    u32.\n"
        "Numerics element i is word i mod 4 of Philox4x32-10 at counter + i div 4; the state advances by "
        "ceil(n / 4):\n"
        "         the same numbers on every backend, thread count and replay.\n"
        "Grad     none: integers.\n"
        "Source   Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (SC 2011).",
    .inputs = {"state"},
    .outputs = {"bits", "next"},
    .traits = ir::Trait::random,
    .updates = {ir::UpdateRule{1, 0}},
    .differentiable = false,
    .infer_many = infer,
};
extern constinit const ir::OpDef random_bits = ir::define<spec>();

}  // namespace weft::ops
