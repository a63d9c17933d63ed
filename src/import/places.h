#pragma once
#include "import/call.h"

// Elements by number: what the ops that pick and write them share.
namespace weft::importer {

/// 0, 1, 2, ... n - 1 in i64; and one number of i64.
ir::Value count(ir::Builder& b, Dim n);
ir::Value number(ir::Builder& b, Dim n);
/// Slices of `x` by number.
ir::Value gather(ir::Builder& b, ir::Value x, ir::Value index, int64_t axis);
/// A tensor without axes as one of one element.
ir::Value with_axis(ir::Builder& b, ir::Value x);
/// With this axis as the last one, and back.
ir::Value to_end(ir::Builder& b, ir::Value x, int64_t axis);
ir::Value from_end(ir::Builder& b, ir::Value x, int64_t axis);
/// The first elements of `x` along each axis but `axis`, as many as `like` has there.
ir::Value cut(ir::Builder& b, ir::Value x, const Shape& like, int64_t axis);

/// `op` is scatter or scatter_add, along argument `dim`, where all other axes of index and x run together.
ir::Value scattered(Call& c, const char* op, ir::Value x, ir::Value index, ir::Value source);
/// What a scatter writes, `value` or `src`, in the shape of the index.
ir::Value source_of(Call& c, ir::Value x, ir::Value index);

}  // namespace weft::importer
