#include "ops/shared/rules.h"

namespace weft::ops {

struct EmbeddingAttrs {
  int64_t padding_idx = -1;
  static constexpr auto fields = ir::fields("padding_idx", &EmbeddingAttrs::padding_idx);
};

static Result<TensorType> infer(ir::Types in, const EmbeddingAttrs& a) {
  const auto &table = in[0], &ids = in[1];
  if (table.rank() < 1) return invalid("embedding: wants a table [rows, ...], got {}", text(table));
  if (a.padding_idx < -1 || a.padding_idx >= table.shape[0].max())
    return invalid("embedding: padding_idx must be -1 or in [0, {}), got {}", table.shape[0].text(),
                   a.padding_idx);
  WEFT_TRY(Shape shape, ir::gathered_shape("embedding", table, ids, {}));
  return TensorType{table.dtype, std::move(shape)};
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const EmbeddingAttrs&) {
  return b.gather(in[0], in[1], 0, 0);
}

// As gather's, except that the padding row gets none.
static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const EmbeddingAttrs& a) {
  const auto& table = ctx.in_type(0);
  const auto ids = ctx.in(1);
  auto dy = ctx.dout(0);
  if (a.padding_idx >= 0) {
    Shape shape(dy.shape().size(), Dim(1));
    std::copy(ids.shape().begin(), ids.shape().end(), shape.begin());
    const auto padding = b.equal(ids, b.full(static_cast<double>(a.padding_idx), {}, ids.dtype()));
    dy = b.where(b.reshape(padding, shape), 0, dy);
  }
  return {b.scatter_add(b.full(0, table.shape, table.dtype), ids, dy, 0, 0), ir::Value()};
}

static constexpr ir::Op<EmbeddingAttrs> spec = {
    .name = "embedding",
    .doc =
        "The rows of `table` that `ids` name.\n\n"
        "Shape    table [rows, ...], ids any; the result is ids + table[1:].\n"
        "DType    table any, ids i32 or i64.\n"
        "Grad     needs the ids; equal ones add up. Row `padding_idx` gets none; -1: there is no such row.\n"
        "Errors   invalid_argument for dtypes and padding_idx; a device error for an id outside the table;\n"
        "         compiled text can't report one and gives NaN.",
    .inputs = {"table", "ids"},
    .traits = ir::Trait::movement,
    .saves = ir::saves::input(1),
    .infer = infer,
    .decompose = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef embedding = ir::define<spec>();

}  // namespace weft::ops
