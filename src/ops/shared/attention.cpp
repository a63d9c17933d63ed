#include "ops/shared/attention.h"

#include <cmath>

#include "ops/shared/rules.h"

namespace weft::ir {
namespace {

Dim from_end(const Shape& s, size_t i) { return s[s.size() - i]; }
Shape leading(const Shape& s) { return Shape(s.begin(), s.end() - 3); }
Value widened(Builder& b, Value x) { return x && is_half(x.dtype()) ? b.cast(x, DType::f32) : x; }

}  // namespace

TensorType turned(TensorType t, const AttentionAttrs& a) {
  const size_t n = t.shape.size();
  if (a.seq_first && n >= 3) std::swap(t.shape[n - 2], t.shape[n - 3]);
  return t;
}
Value turned(Builder& b, Value x, const AttentionAttrs& a) {
  if (!a.seq_first) return x;
  return b.one("transpose", {x}, {{"axis_a", int64_t{-3}}, {"axis_b", int64_t{-2}}});
}

Result<AttentionTypes> attention_types(const char* op, Types in, size_t mask, size_t length,
                                       const AttentionAttrs& a) {
  AttentionTypes types{turned(in[0], a), turned(in[1], a), turned(in[2], a)};
  const auto& [q, k, v] = types;
  if (!is_float(q.dtype) || !is_compute(q.dtype) || k.dtype != q.dtype || v.dtype != q.dtype)
    return invalid("{}: wants q, k and v of one float dtype, got {}, {} and {}", op, text(q), text(k),
                   text(v));
  const Shape &sq = q.shape, &sk = k.shape, &sv = v.shape;
  const bool ranks = q.rank() >= 3 && k.rank() == q.rank() && v.rank() == q.rank();
  if (!ranks || !(leading(sq) == leading(sk)) || !(leading(sk) == leading(sv)) ||
      !(from_end(sq, 1) == from_end(sk, 1)) || !(from_end(sk, 2) == from_end(sv, 2)) ||
      !(from_end(sk, 3) == from_end(sv, 3)))
    return invalid(
        "{}: wants q [..., heads, seq_q, dim], k [..., kv_heads, seq_k, dim] and v [..., kv_heads, "
        "seq_k, width], or with seq_first the seq axes before those of heads, got {}, {} and {}",
        op, text(in[0]), text(in[1]), text(in[2]));
  const Dim heads = from_end(sq, 3), kv = from_end(sk, 3);
  if (!heads.is_const() || !kv.is_const() || kv.value() < 1 || heads.value() % kv.value() != 0)
    return invalid("{}: the heads of q must be a multiple of those of k, got {} and {}", op, heads.text(),
                   kv.text());
  if (in.has(mask)) {
    const auto& m = in[mask];
    if (m.dtype != DType::boolean && m.dtype != q.dtype)
      return invalid("{}: mask must be bool or {}, got {}", op, name(q.dtype), text(m));
    const Shape scores = attention_shape(q, from_end(sk, 2));
    WEFT_TRY(const Shape joined, broadcast_shapes(op, m.shape, scores));
    if (!(joined == scores))
      return invalid("{}: mask {} does not broadcast to the scores {}", op, text(m), text(scores));
  }
  if (in.has(length)) {
    const auto& l = in[length];
    if ((l.dtype != DType::i32 && l.dtype != DType::i64) || !(l.rank() == 0 || l.shape == leading(sq)))
      return invalid("{}: length must be i32 or i64, one number or {}, got {}", op, text(leading(sq)),
                     text(l));
  }
  return types;
}

Shape attention_shape(const TensorType& q, Dim last) {
  Shape s = q.shape;
  s.back() = last;
  return s;
}

DType attention_row_type(DType t) { return is_half(t) ? DType::f32 : t; }

Attention::Attention(Builder& b, Value q, Value k, Value v, Value mask, Value length, const AttentionAttrs& a)
    : b_(b), q_(widened(b, q)), k_(widened(b, k)), v_(widened(b, v)), mask_(mask), length_(length) {
  heads_ = from_end(q.shape(), 3), kv_heads_ = from_end(k.shape(), 3);
  seq_q_ = from_end(q.shape(), 2), seq_k_ = from_end(k.shape(), 2);
  const Dim dim = q.shape().back();
  if (a.scale != 0)
    scale_ = a.scale;
  else if (dim.is_const())
    scale_ = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, dim.value())));
  else  // a symbol, whose value the program's run gives
    scale_ = b.div(1, b.sqrt(b.full(1, {}, q_.dtype(), max(dim, Dim(1)))));
  if (mask_ && mask_.dtype() != DType::boolean) mask_ = widened(b, mask_);
  if (length_) {
    Shape each = length_.shape();  // one for each matrix of scores
    if (!each.empty()) each.push_back(1), each.push_back(1), each.push_back(1);
    length_ = b.reshape(b.cast(length_, DType::i32), each);
    k_ = used(k_), v_ = used(v_);
    limit_ = length_;
  }
  if (a.causal) {  // the last query sees all keys, the one before it one key less
    const Value n = length_ ? length_ : b.full(1, {}, DType::i32, seq_k_);
    const Value first = b.add(b.sub(n, b.full(1, {}, DType::i32, seq_q_)), 1);
    limit_ = b.add(first, positions(seq_q_, true));
  }
}

/// 0, 1, 2, ... along the rows of a matrix, or down its columns.
Value Attention::positions(Dim n, bool down) const {
  const Value p = b_.one("iota", {}, {{"size", Shape{n}}});
  return down ? b_.reshape(p, {n, 1}) : p;
}

/// Values beyond the length may be anything, even NaN, which a weight of zero would not remove.
Value Attention::used(Value x) const { return b_.where(b_.less(positions(seq_k_, true), length_), x, 0); }

Value Attention::grouped(Value x) const {
  Shape s = x.shape();
  s[s.size() - 2] = s[s.size() - 2] * Dim(heads_.value() / kv_heads_.value());
  s[s.size() - 3] = kv_heads_;
  return b_.reshape(x, s);
}
Value Attention::ungrouped(Value x) const {
  Shape s = x.shape();
  s[s.size() - 2] = seq_q_;
  s[s.size() - 3] = heads_;
  return b_.reshape(x, s);
}

Value Attention::scores() const {
  Value s = b_.mul(ungrouped(b_.matmul(grouped(q_), k_, false, true)), scale_);
  if (mask_ && mask_.dtype() == DType::boolean) s = b_.where(mask_, s, -INFINITY);
  if (mask_ && mask_.dtype() != DType::boolean) s = b_.add(s, mask_);
  return limit_ ? b_.where(b_.less(positions(seq_k_, false), limit_), s, -INFINITY) : s;
}

Value Attention::weights(Value scores, Value lse) const {
  Shape rows = lse.shape();
  rows.push_back(1);
  const Value shift = b_.reshape(b_.where(b_.equal(lse, -INFINITY), 0, lse), rows);
  return b_.exp(b_.sub(scores, shift));
}

Value Attention::mix(Value weights) const { return ungrouped(b_.matmul(grouped(weights), v_)); }

// y = w v with w = exp(s - lse): dw = dy vᵀ, and each row of w sums to 1, so ds = w (dw - y . dy + dlse).
Value Attention::dscores(Value weights, Value y, Value dy, Value dlse) const {
  const Value wide_dy = widened(b_, dy);
  Value ds = b_.sub(ungrouped(b_.matmul(grouped(wide_dy), v_, false, true)),
                    b_.sum(b_.mul(wide_dy, widened(b_, y)), -1));
  if (dlse) {
    Shape rows = dlse.shape();
    rows.push_back(1);
    ds = b_.add(ds, b_.reshape(dlse, rows));
  }
  return b_.mul(weights, ds);
}

Value Attention::dq(Value dscores) const {
  return b_.mul(ungrouped(b_.matmul(grouped(dscores), k_)), scale_);
}
Value Attention::dk(Value dscores) const {
  return b_.mul(b_.matmul(grouped(dscores), grouped(q_), true, false), scale_);
}
Value Attention::dv(Value weights, Value dy) const {
  return b_.matmul(grouped(weights), grouped(widened(b_, dy)), true, false);
}

}  // namespace weft::ir
