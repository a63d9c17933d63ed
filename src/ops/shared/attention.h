#pragma once
#include "ir/builder.h"

// The parts of attention and attention_grad: scores, weights and their gradients.
namespace weft::ir {

struct AttentionAttrs {
  bool causal = false;
  double scale = 0;
  bool seq_first = false;
  static constexpr auto fields = ir::fields("causal", &AttentionAttrs::causal, "scale",
                                            &AttentionAttrs::scale, "seq_first", &AttentionAttrs::seq_first);
};

/// Swaps [..., heads, seq, n] and [..., seq, heads, n] if the attributes say so; its own inverse.
TensorType turned(TensorType t, const AttentionAttrs& a);
Value turned(Builder& b, Value x, const AttentionAttrs& a);

/// q [..., heads, seq_q, dim], k [..., kv_heads, seq_k, dim], v [..., kv_heads, seq_k, width].
struct AttentionTypes {
  TensorType q, k, v;
};
/// Checks them, and the mask and the length at these operand positions, if present.
Result<AttentionTypes> attention_types(const char* op, Types in, size_t mask, size_t length,
                                       const AttentionAttrs& a);
/// [..., heads, seq_q, last].
Shape attention_shape(const TensorType& q, Dim last);
/// The dtype of log-sum-exp rows: f64 for f64, otherwise f32.
DType attention_row_type(DType t);

/// The decomposition of one call. Halves are widened to f32. Query heads that share a head of k and v lie
/// side by side, so [..., heads, seq_q, n] is [..., kv_heads, heads / kv_heads * seq_q, n] without a move.
class Attention {
 public:
  /// `mask` and `length` may be absent.
  Attention(Builder& b, Value q, Value k, Value v, Value mask, Value length, const AttentionAttrs& a);

  /// [..., heads, seq_q, seq_k]: scaled, and -inf where a query may not look.
  Value scores() const;
  /// exp(scores - lse): the weight of each value for each query. Zero in fully masked rows (lse = -inf).
  Value weights(Value scores, Value lse) const;
  /// The weighted sum of v: [..., heads, seq_q, width].
  Value mix(Value weights) const;

  /// The gradient of the scores from those of y and, if present, of lse.
  Value dscores(Value weights, Value y, Value dy, Value dlse) const;
  Value dq(Value dscores) const;
  Value dk(Value dscores) const;
  Value dv(Value weights, Value dy) const;

 private:
  Value grouped(Value x) const;
  Value ungrouped(Value x) const;
  Value used(Value x) const;
  Value positions(Dim n, bool down) const;

  Builder& b_;
  Value q_, k_, v_, mask_, length_;
  Dim heads_, kv_heads_, seq_q_, seq_k_;
  Value limit_;  // a query sees the keys below it; absent: all
  Builder::Operand scale_ = 1;
};

}  // namespace weft::ir
