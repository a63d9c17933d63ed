#include "ops/shared/rules.h"

namespace weft::ops {

struct MatmulAttrs {
  bool transpose_a = false;
  bool transpose_b = false;
  static constexpr auto fields =
      ir::fields("transpose_a", &MatmulAttrs::transpose_a, "transpose_b", &MatmulAttrs::transpose_b);
};

static Result<TensorType> infer(ir::Types in, const MatmulAttrs& at) {
  const auto &a = in[0], &b = in[1];
  if (a.dtype != b.dtype || !is_float(a.dtype) || !is_compute(a.dtype))
    return invalid("matmul: wants two operands of one float dtype, got {} and {}", text(a), text(b));
  if (a.rank() < 2 || b.rank() < 2)
    return invalid("matmul: wants rank 2 or more, got {} and {}", text(a), text(b));
  const size_t ra = a.shape.size(), rb = b.shape.size();
  const Dim m = a.shape[ra - (at.transpose_a ? 1 : 2)], ka = a.shape[ra - (at.transpose_a ? 2 : 1)];
  const Dim kb = b.shape[rb - (at.transpose_b ? 1 : 2)], n = b.shape[rb - (at.transpose_b ? 2 : 1)];
  if (!(ka == kb))
    return invalid("matmul: inner sizes differ: {}{} against {}{}: {} and {}", text(a),
                   at.transpose_a ? " transposed" : "", text(b), at.transpose_b ? " transposed" : "",
                   ka.text(), kb.text());
  WEFT_TRY(Shape shape, ir::broadcast_shapes("matmul", Shape(a.shape.begin(), a.shape.end() - 2),
                                             Shape(b.shape.begin(), b.shape.end() - 2)));
  shape.push_back(m);
  shape.push_back(n);
  return TensorType{a.dtype, std::move(shape)};
}

// y = A B with A = a or aᵀ, B = b or bᵀ: dA = dy Bᵀ, dB = Aᵀ dy; a transposed operand gets the transposed
// gradient.
static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const MatmulAttrs& at) {
  const auto dy = ctx.dout(0);
  ir::Grads g(2);
  if (ctx.wants(0)) {
    const auto other = ctx.in(1);
    const auto da = at.transpose_a ? b.matmul(other, dy, at.transpose_b, true)
                                   : b.matmul(dy, other, false, !at.transpose_b);
    g[0] = b.sum_to(da, ctx.in_type(0).shape);
  }
  if (ctx.wants(1)) {
    const auto other = ctx.in(0);
    const auto db = at.transpose_b ? b.matmul(dy, other, true, at.transpose_a)
                                   : b.matmul(other, dy, !at.transpose_a, false);
    g[1] = b.sum_to(db, ctx.in_type(1).shape);
  }
  return g;
}

static constexpr ir::Op<MatmulAttrs> spec = {
    .name = "matmul",
    .doc =
        "Matrix product of the last two axes, for each matrix of the leading ones.\n\n"
        "Shape    [..., m, k] x [..., k, n] -> [..., m, n]; a transposed operand is stored the other way "
        "round;\n"
        "         leading axes broadcast.\n"
        "DType    one float dtype; accumulates in f32 or better.\n"
        "Grad     needs both inputs.\n"
        "Errors   invalid_argument when inner sizes differ or a rank is below 2.",
    .inputs = {"a", "b"},
    .saves = ir::saves::inputs,
    .infer = infer,
    .grad = grad,
};
extern constinit const ir::OpDef matmul = ir::define<spec>();

}  // namespace weft::ops
