#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) {
  const auto &a = in[0], &b = in[1];
  if (a.dtype != b.dtype || !is_float(a.dtype) || !is_compute(a.dtype) || a.rank() != 2 || b.rank() != 2 ||
      !(a.shape[1] == b.shape[0]))
    return invalid("matmul2d: wants a [m, k] and b [k, n] of one float dtype, got {} and {}", text(a),
                   text(b));
  return TensorType{a.dtype, {a.shape[0], b.shape[1]}};
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const ir::NoAttrs&) {
  return b.matmul(in[0], in[1]);
}

// da = dy bᵀ, db = aᵀ dy
static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::NoAttrs&) {
  const auto dy = ctx.dout(0);
  ir::Grads g(2);
  if (ctx.wants(0)) g[0] = b.matmul(dy, ctx.in(1), false, true);
  if (ctx.wants(1)) g[1] = b.matmul(ctx.in(0), dy, true, false);
  return g;
}

static constexpr ir::Op<> spec = {
    .name = "matmul2d",
    .doc =
        "Product of two matrices: matmul for those who want to hear of any other rank.\n\n"
        "Shape    [m, k] x [k, n] -> [m, n].\n"
        "DType    one float dtype; accumulates in f32 or better.\n"
        "Grad     needs both inputs.\n"
        "Errors   invalid_argument when inner sizes differ or a rank is not 2.",
    .inputs = {"a", "b"},
    .saves = ir::saves::inputs,
    .infer = infer,
    .decompose = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef matmul2d = ir::define<spec>();

}  // namespace weft::ops
