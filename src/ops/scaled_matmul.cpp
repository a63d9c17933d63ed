#include "ops/shared/rules.h"

namespace weft::ops {

struct ScaledMatmulAttrs {
  DType dtype = DType::f32;
  static constexpr auto fields = ir::fields("dtype", &ScaledMatmulAttrs::dtype);
};

static bool is_f8(DType t) { return t == DType::f8e4m3 || t == DType::f8e5m2; }
static bool may_multiply(DType a, DType b) {
  return (is_f8(a) && is_f8(b)) || (a == DType::i8 && b == DType::i8);
}

/// Rank 0, or one scale for each row of a matrix whose rows are numbered by `rows`.
static bool is_scale(const TensorType& t, const Shape& rows) {
  return t.dtype == DType::f32 && (t.shape.empty() || t.shape == rows);
}

static Result<TensorType> infer(ir::Types in, const ScaledMatmulAttrs& at) {
  const auto &a = in[0], &b = in[1];
  if (!may_multiply(a.dtype, b.dtype))
    return invalid("scaled_matmul: wants a and b of f8e4m3 or f8e5m2, or both of i8, got {} and {}", text(a),
                   text(b));
  if (a.rank() < 1 || b.rank() != 2 || !(a.shape.back() == b.shape[1]))
    return invalid("scaled_matmul: wants a [..., k] and b [n, k], got {} and {}", text(a), text(b));
  const Shape rows(a.shape.begin(), a.shape.end() - 1), columns{b.shape[0]};
  if (!is_scale(in[2], rows) || !is_scale(in[3], columns))
    return invalid(
        "scaled_matmul: wants scales of f32, of rank 0 or one for each row of {} and of {}, got {} and {}",
        text(a), text(b), text(in[2]), text(in[3]));
  if (at.dtype != DType::f32 && !is_half(at.dtype))
    return invalid("scaled_matmul: wants dtype f32, f16 or bf16, got {}", name(at.dtype));
  if (in.has(4) && !(in[4].dtype == at.dtype && in[4].shape == columns))
    return invalid("scaled_matmul: wants bias [{}] of {}, got {}", columns[0].text(), name(at.dtype),
                   text(in[4]));
  Shape shape = rows;
  shape.push_back(columns[0]);
  return TensorType{at.dtype, std::move(shape)};
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const ScaledMatmulAttrs& at) {
  Shape shape = in[0].shape();
  Dim rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) rows = rows * shape[i];
  const auto wide = b.cast(b.reshape(in[0], {rows, shape.back()}), DType::f32);
  auto y = b.matmul(wide, b.cast(in[1], DType::f32), false, true);
  y = b.mul(y, in[2].shape().empty() ? in[2] : b.reshape(in[2], {rows, 1}));
  y = b.mul(y, in[3]);
  if (in.size() > 4 && in[4]) y = b.add(y, in[4].dtype() == DType::f32 ? in[4] : b.cast(in[4], DType::f32));
  shape.back() = in[1].shape()[0];
  y = b.reshape(y, shape);
  return at.dtype == DType::f32 ? y : b.cast(y, at.dtype);
}

static constexpr ir::Op<ScaledMatmulAttrs> spec = {
    .name = "scaled_matmul",
    .doc =
        "(a bᵀ) a_scale b_scale + bias: the product of two matrices of 8-bit numbers with scales.\n\n"
        "Shape    a [..., k], b [n, k], as linear's weight -> [..., n]; a_scale [] or [...], b_scale [] or "
        "[n]:\n"
        "         one, or one for each row; bias [n] or none.\n"
        "DType    a and b f8e4m3 or f8e5m2, also one of each, or both i8; scales f32; bias and result "
        "`dtype`: f32,\n"
        "         f16 or bf16.\n"
        "Numerics sums of floats in f32 or better, unless `--precision bf16` allows those of 8-bit tensor "
        "cores.\n"
        "         Kernels for i8 sum in i32, exactly; 2^17 products of -128 are more than it holds, so they "
        "take\n"
        "         k < 2^17. Where no kernel takes i8, the sums are those of f32, exact up to 2^24. Rounds to "
        "`dtype`\n"
        "         once, at the end. weft/quantize.h makes a tensor's elements and scales.\n"
        "Grad     none: 8-bit elements have no derivative. A layer that learns multiplies its quantised "
        "gradients\n"
        "         by this op.\n"
        "Errors   invalid_argument for shapes and dtypes.\n"
        "Source   PyTorch, torch._scaled_mm, torch._int_mm.",
    .inputs = {"a", "b", "a_scale", "b_scale", "bias"},
    .n_optional = 1,
    .differentiable = false,
    .infer = infer,
    .decompose = decompose,
};
extern constinit const ir::OpDef scaled_matmul = ir::define<spec>();

}  // namespace weft::ops
