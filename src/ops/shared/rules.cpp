#include "ops/shared/rules.h"

namespace weft::ir {

Result<Shape> broadcast_shapes(const char* op, const Shape& a, const Shape& b) {
  const size_t rank = std::max(a.size(), b.size());
  Shape out(rank, Dim(1));
  for (size_t i = 0; i < rank; ++i) {
    const Dim da = i < rank - a.size() ? Dim(1) : a[i - (rank - a.size())];
    const Dim db = i < rank - b.size() ? Dim(1) : b[i - (rank - b.size())];
    if (!(da == db) && !(da == Dim(1)) && !(db == Dim(1)))
      return invalid("{}: shapes {} and {} do not broadcast: axis {} has {} and {}", op, text(a), text(b), i,
                     da.text(), db.text());
    out[i] = da == Dim(1) ? db : da;
  }
  return out;
}

Result<TensorType> infer_binary(const char* op, Types in) {
  const auto &a = in[0], &b = in[1];
  if (a.dtype != b.dtype)
    return invalid("{}: operands must have one dtype, got {} and {}; cast one", op, text(a), text(b));
  WEFT_TRY(Shape shape, broadcast_shapes(op, a.shape, b.shape));
  return TensorType{a.dtype, std::move(shape)};
}

static bool is_number(DType t) { return is_compute(t) && t != DType::boolean; }

Result<TensorType> infer_arithmetic(const char* op, Types in) {
  if (!is_number(in[0].dtype)) return invalid("{}: wants a number type, got {}", op, text(in[0]));
  return infer_binary(op, in);
}

Result<TensorType> infer_comparison(const char* op, Types in) {
  if (!is_compute(in[0].dtype)) return invalid("{}: wants a compute type, got {}", op, text(in[0]));
  WEFT_TRY(auto y, infer_binary(op, in));
  y.dtype = DType::boolean;
  return y;
}

Result<TensorType> infer_logic(const char* op, Types in) {
  if (in[0].dtype != DType::boolean) return invalid("{}: wants bool, got {}", op, text(in[0]));
  return in.size() == 1 ? Result<TensorType>(in[0]) : infer_binary(op, in);
}

Result<TensorType> infer_bits(const char* op, Types in) {
  if (!is_compute(in[0].dtype) || is_float(in[0].dtype))
    return invalid("{}: wants i32, i64, u32, u64 or bool, got {}", op, text(in[0]));
  return infer_binary(op, in);
}

Result<TensorType> infer_shift(const char* op, Types in) {
  if (!is_number(in[0].dtype) || is_float(in[0].dtype))
    return invalid("{}: wants i32, i64, u32 or u64, got {}", op, text(in[0]));
  return infer_binary(op, in);
}

Result<TensorType> infer_unary(const char* op, Types in) {
  if (!is_number(in[0].dtype)) return invalid("{}: wants a number type, got {}", op, text(in[0]));
  return in[0];
}

Result<TensorType> infer_float_question(const char* op, Types in) {
  WEFT_TRY(auto y, infer_float_unary(op, in));
  y.dtype = DType::boolean;
  return y;
}

Grads shared_by_ties(Builder& b, const GradContext& ctx, Value loses, Value wins) {
  const auto dy = ctx.dout(0), tie = b.equal(ctx.in(0), ctx.in(1)), half = b.mul(dy, 0.5);
  const auto part = [&](Value lost, const Shape& shape) {
    return b.sum_to(b.where(tie, half, b.where(lost, 0, dy)), shape);
  };
  Grads g(2);
  if (ctx.wants(0)) g[0] = part(loses, ctx.in_type(0).shape);
  if (ctx.wants(1)) g[1] = part(wins, ctx.in_type(1).shape);
  return g;
}

Result<TensorType> infer_float_unary(const char* op, Types in) {
  if (!is_float(in[0].dtype) || !is_compute(in[0].dtype))
    return invalid("{}: wants f64, f32, f16 or bf16, got {}", op, text(in[0]));
  return in[0];
}

static Result<SmallVector<bool, 8>> folded_axes(const char* op, const Shape& x, const ReduceAttrs& a) {
  const auto rank = static_cast<int64_t>(x.size());
  SmallVector<bool, 8> folded(x.size(), a.axes.empty());
  for (const Dim d : a.axes) {
    if (!d.is_const()) return invalid("{}: an axis must be a number, got {}", op, d.text());
    WEFT_TRY(const int64_t axis, resolve_axis(op, d.value(), rank));
    folded[static_cast<size_t>(axis)] = true;
  }
  return folded;
}

Result<TensorType> infer_reduce(const char* op, Types in, const ReduceAttrs& a) {
  const auto& x = in[0];
  if (!is_compute(x.dtype) || x.dtype == DType::boolean)
    return invalid("{}: wants a number type, got {}", op, text(x));
  WEFT_TRY(const auto folded, folded_axes(op, x.shape, a));
  TensorType out{x.dtype, {}};
  for (size_t i = 0; i < folded.size(); ++i) {
    if (!folded[i]) out.shape.push_back(x.shape[i]);
    if (folded[i] && a.keep) out.shape.push_back(1);
  }
  return out;
}

Shape kept_shape(const Shape& x, const ReduceAttrs& a) {
  const auto folded = folded_axes("", x, a);  // infer has checked them
  Shape out = x;
  for (size_t i = 0; i < out.size(); ++i)
    if (folded.value()[i]) out[i] = 1;
  return out;
}

Result<Shape> gathered_shape(const char* op, const TensorType& x, const TensorType& index,
                             const IndexAttrs& a) {
  if (index.dtype != DType::i32 && index.dtype != DType::i64)
    return invalid("{}: index must be i32 or i64, got {}", op, text(index));
  WEFT_TRY(const int64_t axis, resolve_axis(op, a.axis, x.rank()));
  if (a.batch < 0 || a.batch > axis || a.batch > index.rank())
    return invalid("{}: batch must be in [0, min(axis={}, rank of index={})], got {}", op, axis, index.rank(),
                   a.batch);
  const auto at = static_cast<size_t>(axis), batch = static_cast<size_t>(a.batch);
  for (size_t i = 0; i < batch; ++i)
    if (!(x.shape[i] == index.shape[i]))
      return invalid("{}: batch axis {} differs: {} against {}", op, i, text(x), text(index));
  Shape out(x.shape.begin(), x.shape.begin() + at);
  for (size_t i = batch; i < index.shape.size(); ++i) out.push_back(index.shape[i]);
  for (size_t i = at + 1; i < x.shape.size(); ++i) out.push_back(x.shape[i]);
  return out;
}

}  // namespace weft::ir
