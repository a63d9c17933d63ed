#include "ops/shared/rules.h"

namespace weft::ops {

static Result<std::vector<TensorType>> infer(ir::Types in, const ir::NoAttrs&) {
  const auto &cache = in[0], &rows = in[1], &length = in[2];
  Shape wanted = cache.shape;  // of the rows, except their number
  const bool fits = cache.rank() >= 3 && rows.rank() == cache.rank() && rows.dtype == cache.dtype;
  if (fits) wanted[wanted.size() - 2] = rows.shape[rows.shape.size() - 2];
  if (!fits || !is_compute(cache.dtype) || !(rows.shape == wanted))
    return invalid(
        "cache_append: wants cache [..., heads, capacity, dim] and rows [..., heads, n, dim] of one dtype, "
        "got {} and {}",
        text(cache), text(rows));
  if (wanted[wanted.size() - 2].min() < 1)
    return invalid("cache_append: there must be a row at least, got {}", text(rows));
  const Shape each(cache.shape.begin(), cache.shape.end() - 3);
  if ((length.dtype != DType::i32 && length.dtype != DType::i64) ||
      !(length.rank() == 0 || length.shape == each))
    return invalid("cache_append: length must be i32 or i64, one number or {}, got {}", text(each),
                   text(length));
  return std::vector<TensorType>{cache};
}

// Position p gets row p - length if that exists, and is unchanged otherwise.
static ir::ValueList decompose(ir::Builder& b, ir::Values in, const ir::NoAttrs&) {
  const auto cache = in[0], rows = in[1];
  const Shape shape = cache.shape();  // a copy: the builder moves its types
  const auto axis = static_cast<int64_t>(shape.size()) - 2;
  const Dim capacity = shape[shape.size() - 2], n = rows.shape()[shape.size() - 2];
  auto length = b.cast(in[2], DType::i32);
  const bool one = length.shape().empty();
  if (!one) {
    Shape each = length.shape();
    each.push_back(1), each.push_back(1);
    length = b.reshape(length, each);
  }
  const auto row = b.sub(b.one("iota", {}, {{"size", Shape{capacity}}}), length);
  const auto there = b.bit_and(b.less(-1, row), b.less(row, b.full(1, {}, DType::i32, n)));
  auto index = b.where(there, row, 0);
  if (!one) index = b.broadcast(index, Shape(shape.begin(), shape.end() - 1));
  const auto picked = b.gather(rows, index, axis, one ? 0 : axis);
  Shape beside = there.shape();
  beside.push_back(1);
  return {b.where(b.reshape(there, beside), picked, cache)};
}

static constexpr ir::Op<> spec = {
    .name = "cache_append",
    .doc =
        "Writes `rows` into `cache` behind the first `length` rows of each sequence, in place.\n\n"
        "Shape    cache [..., heads, capacity, dim], rows [..., heads, n, dim] with n >= 1; length is one "
        "number, or\n"
        "         [...]. Rows that would lie outside the cache are left out.\n"
        "DType    cache and rows one dtype that computes, length i32 or i64.\n"
        "Grad     none: it is an update.\n"
        "Errors   invalid_argument for shapes and dtypes.\n"
        "Source   Pope et al., Efficiently scaling transformer inference (MLSys 2023), section 2.1.",
    .inputs = {"cache", "rows", "length"},
    .outputs = {"next"},
    .n_public = 0,
    .updates = {ir::UpdateRule{0, 0}},
    .differentiable = false,
    .infer_many = infer,
    .decompose_many = decompose,
};
extern constinit const ir::OpDef cache_append = ir::define<spec>();

}  // namespace weft::ops
