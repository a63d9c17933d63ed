#include <cmath>

#include "ops/shared/rules.h"

namespace weft::ops {

struct DropoutAttrs {
  double p = 0.5;
  static constexpr auto fields = ir::fields("p", &DropoutAttrs::p);
};

static Result<std::vector<TensorType>> infer(ir::Types in, const DropoutAttrs& a) {
  const auto &x = in[0], &state = in[1];
  if (!is_float(x.dtype) || !is_compute(x.dtype)) return invalid("dropout: x must be float, got {}", text(x));
  if (state.dtype != DType::u64 || !(state.shape == Shape{2}))
    return invalid("dropout: state must be u64[2] (key, counter), got {}", text(state));
  if (!(a.p >= 0 && a.p < 1)) return invalid("dropout: p must be in [0, 1), got {}", a.p);
  return std::vector<TensorType>{x, {DType::boolean, x.shape}, state};
}

// An element is kept if its random word is at least p * 2^32, and scaled to preserve the mean.
static ir::ValueList decompose(ir::Builder& b, ir::Values in, const DropoutAttrs& a) {
  const auto x = in[0];
  const auto drawn = b.call("random_bits", std::array{in[1]}, {{"shape", x.shape()}});
  const auto dropped = b.less(drawn[0], b.full(std::floor(a.p * 0x1p32), {}, DType::u32));
  const auto keep = b.equal(dropped, b.full(0, {}, DType::boolean));
  return {b.where(keep, b.mul(x, 1 / (1 - a.p)), 0), keep, drawn[1]};
}

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const DropoutAttrs& a) {
  return {b.where(ctx.out(1), b.mul(ctx.dout(0), 1 / (1 - a.p)), 0), ir::Value()};
}

static constexpr ir::Op<DropoutAttrs> spec = {
    .name = "dropout",
    .doc =
        "Zeroes each element with probability `p` and scales the others by 1 / (1 - p).\n\n"
        "Shape    same as `x`; state u64[2] = key, counter, advanced in place.\n"
        "DType    float.\n"
        "Numerics p is rounded down to a multiple of 2^-32; the mask comes from random_bits, equal on every "
        "backend.\n"
        "Grad     needs the mask, not `x`.\n"
        "Errors   invalid_argument unless 0 <= p < 1.\n"
        "Source   Srivastava et al., Dropout (JMLR 2014).",
    .inputs = {"x", "state"},
    .outputs = {"y", "mask", "next"},
    .traits = ir::Trait::random,
    .saves = ir::saves::output(1),
    .updates = {ir::UpdateRule{2, 1}},
    .infer_many = infer,
    .decompose_many = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef dropout = ir::define<spec>();

}  // namespace weft::ops
