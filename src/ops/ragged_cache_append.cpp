#include "ops/shared/ragged.h"

namespace weft::ops {

static Result<std::vector<TensorType>> infer(ir::Types in, const ir::NoAttrs&) {
  const auto &cache = in[0], &rows = in[1];
  const bool fits = cache.rank() == 4 && rows.rank() == 3 && rows.dtype == cache.dtype &&
                    rows.shape[1] == cache.shape[1] && rows.shape[2] == cache.shape[3];
  if (!fits || !is_compute(cache.dtype))
    return invalid(
        "ragged_cache_append: wants cache [batch, heads, capacity, dim] and rows [tokens, heads, dim] of one "
        "dtype, got {} and {}",
        text(cache), text(rows));
  if (rows.shape[0].min() < 1)
    return invalid("ragged_cache_append: there must be a row at least, got {}", text(rows));
  WEFT_CHECK(ir::check_ragged("ragged_cache_append", cache.shape[0], in[2], in[3]));
  return std::vector<TensorType>{cache};
}

// Position p of sequence i gets row offsets[i] + p - length[i] if that is one of its rows, and is unchanged
// otherwise.
static ir::ValueList decompose(ir::Builder& b, ir::Values in, const ir::NoAttrs&) {
  const auto cache = in[0], rows = in[1];
  const Dim batch = cache.shape()[0], capacity = cache.shape()[2], tokens = rows.shape()[0];
  const ir::Ragged it(b, tokens, batch, capacity, in[2], in[3]);
  const auto place = b.one("iota", {}, {{"size", Shape{capacity}}});
  const auto row = b.add(b.reshape(b.sub(it.first(), it.length()), {batch, 1}), place);  // [batch, capacity]
  const auto last = b.sub(b.full(1, {}, DType::i32, tokens), 1);
  const auto index = b.minimum(b.maximum(row, 0), last);
  const auto number = b.reshape(b.one("iota", {}, {{"size", Shape{batch}}}), {batch, 1});
  const auto owner = b.where(it.is_in_one(), it.sequence(), -1);
  const auto there = b.bit_and(b.equal(index, row), b.equal(b.gather(owner, index, 0, 0), number));
  const auto picked =
      b.one("transpose", {b.gather(rows, index, 0, 0)}, {{"axis_a", int64_t{1}}, {"axis_b", int64_t{2}}});
  return {b.where(b.reshape(there, {batch, 1, capacity, 1}), picked, cache)};
}

static constexpr ir::Op<> spec = {
    .name = "ragged_cache_append",
    .doc =
        "Writes rows of sequences of different lengths into `cache`, each sequence's behind its first "
        "`length` "
        "rows, in place.\n\n"
        "Shape    cache [batch, heads, capacity, dim], rows [tokens, heads, dim] with batch and tokens >= 1, "
        "length\n"
        "         [batch], offsets [batch + 1]. Row t belongs to sequence i with offsets[i] <= t < offsets[i "
        "+ 1];\n"
        "         a sequence may have none. Rows of no sequence, and rows that would lie outside the cache, "
        "are left\n"
        "         out.\n"
        "DType    cache and rows one dtype that computes, length and offsets i32 or i64.\n"
        "Numerics A length outside 0..capacity and an offset outside 0..tokens count as the nearest in it. "
        "Of offsets\n"
        "         out of order, row t belongs to the sequence i where i + 1 offsets are at most t.\n"
        "Grad     none: it is an update.\n"
        "Errors   invalid_argument for shapes and dtypes.\n"
        "Source   Pope et al., Efficiently scaling transformer inference (MLSys 2023), section 2.1; the "
        "layout is\n"
        "         that of FlashAttention's variable-length kernels (cu_seqlens).",
    .inputs = {"cache", "rows", "length", "offsets"},
    .outputs = {"next"},
    .n_public = 0,
    .updates = {ir::UpdateRule{0, 0}},
    .differentiable = false,
    .infer_many = infer,
    .decompose_many = decompose,
};
extern constinit const ir::OpDef ragged_cache_append = ir::define<spec>();

}  // namespace weft::ops
