#include "ops/shared/rules.h"

namespace weft::ops {

struct CastAttrs {
  DType dtype = DType::f32;
  static constexpr auto fields = ir::fields("dtype", &CastAttrs::dtype);
};

static Result<TensorType> infer(ir::Types in, const CastAttrs& a) { return TensorType{a.dtype, in[0].shape}; }

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const CastAttrs& a) {
  const DType from = ctx.in_type(0).dtype;
  if (!is_float(from) || !is_float(a.dtype)) return {ir::Value()};
  return {b.cast(ctx.dout(0), from)};
}

static constexpr ir::Op<CastAttrs> spec = {
    .name = "cast",
    .doc =
        "Converts to another dtype.\n\n"
        "Shape    same as `x`.\n"
        "DType    any to any. Floats round to nearest even; float to integer truncates and saturates, NaN "
        "gives 0;\n"
        "         to bool is x != 0.\n"
        "Grad     between floats: the gradient, cast back. To or from integers none.",
    .inputs = {"x"},
    .traits = ir::Trait::elementwise,
    .infer = infer,
    .grad = grad,
};
extern constinit const ir::OpDef cast = ir::define<spec>();

}  // namespace weft::ops
