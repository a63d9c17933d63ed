#include "ops/shared/ragged.h"

namespace weft::ir {
namespace {

bool is_index(DType t) { return t == DType::i32 || t == DType::i64; }

/// Clamped before it is narrowed, so that no number wraps around.
Value within(Builder& b, Value x, Dim most) {
  const Value up = b.maximum(x, 0);
  return b.cast(b.minimum(up, b.full(1, {}, x.dtype(), most)), DType::i32);
}
Value iota(Builder& b, Dim n) { return b.one("iota", {}, {{"size", Shape{n}}}); }
Value part(Builder& b, Value x, Dim begin, Dim end) {
  return b.one("slice", {x}, {{"axis", int64_t{0}}, {"start", Shape{begin}}, {"stop", Shape{end}}});
}

}  // namespace

Status check_ragged(const char* op, Dim batch, const TensorType& length, const TensorType& offsets) {
  if (batch.min() < 1) return invalid("{}: there must be a sequence at least, got {}", op, batch.text());
  if (!is_index(length.dtype) || !(length.shape == Shape{batch}))
    return invalid("{}: length must be i32 or i64 [{}], got {}", op, batch.text(), text(length));
  if (!is_index(offsets.dtype) || !(offsets.shape == Shape{batch + Dim(1)}))
    return invalid("{}: offsets must be i32 or i64 [{}], got {}", op, (batch + Dim(1)).text(), text(offsets));
  return {};
}

Ragged::Ragged(Builder& b, Dim tokens, Dim batch, Dim capacity, Value length, Value offsets)
    : length_(within(b, length, capacity)), offsets_(within(b, offsets, tokens)) {
  const Value t = iota(b, tokens);
  first_ = part(b, offsets_, 0, batch);
  // How many offsets are at most t: one more than the number of the sequence.
  const Value begun = b.less(b.reshape(offsets_, {1, batch + Dim(1)}), b.reshape(b.add(t, 1), {tokens, 1}));
  const Value number = b.sub(b.reshape(b.sum(b.cast(begun, DType::i32), -1), {tokens}), 1);
  const Value last = b.sub(b.full(1, {}, DType::i32, batch), 1);
  in_one_ = b.bit_and(b.less(-1, number), b.less(number, b.add(last, 1)));
  sequence_ = b.minimum(b.maximum(number, 0), last);
  position_ = b.add(b.gather(b.sub(length_, first_), sequence_, 0, 0), t);
}

}  // namespace weft::ir
