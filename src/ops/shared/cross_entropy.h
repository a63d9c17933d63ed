#pragma once
#include "ops/shared/rules.h"

// Shared by cross_entropy and its gradient. With logits x [n, classes] and s = label_smoothing,
//
//   loss = -sum over rows i and classes c of t[i, c] log_softmax(x)[i, c] / divisor.
//
// The divisor is 1 where the sum is wanted and not the mean. For the mean:
//
// Classes as target:        t[i, c] = weight[c] ((1 - s) [c = target[i]] + s / classes), nothing in ignored
//                           rows; the divisor is the sum of weight[target[i]] over the other rows.
// Probabilities as target:  t[i, c] = weight[c] ((1 - s) target[i, c] + s / classes); the divisor is n.
namespace weft::ir {

struct CrossEntropyAttrs {
  int64_t ignore_index = -100;
  double label_smoothing = 0;
  bool summed = false;  ///< not in `fields`: it came last, each op lists it behind its own
  static constexpr auto fields = ir::fields("ignore_index", &CrossEntropyAttrs::ignore_index,
                                            "label_smoothing", &CrossEntropyAttrs::label_smoothing);
};

/// Checks logits, target, weight (null: none) and attributes together.
Status check_cross_entropy(const char* op, const TensorType& logits, const TensorType& target,
                           const TensorType* weight, const CrossEntropyAttrs& a);

/// Parts of the sum that both ops need.
struct CrossEntropy {
  CrossEntropy(Builder& builder, Value logits, Value target, Value weight, const CrossEntropyAttrs& a);

  Builder& b;
  Value x, target, weight;  ///< the weight may be absent
  bool of_classes;
  double kept, smoothing;  ///< 1 - s, and s
  Value divisor;           ///< rank 0

  // For classes.
  Value counted;  ///< [n], false in ignored rows
  Value safe;     ///< the target, and 0 in ignored rows

  /// `per_class` [..., classes] times the weight, if there is one.
  Value weighted(Value per_class) const { return weight ? b.mul(per_class, weight) : per_class; }
  /// weight[target], [n]; absent if all weights are 1.
  Value row_weight() const { return weight ? b.gather(weight, safe, 0, 0) : Value(); }
  /// s / classes, rank 0.
  Value share() const;
  /// The smoothed target probabilities: (1 - s) target + s / classes.
  Value aimed() const { return smoothing > 0 ? b.add(b.mul(target, kept), share()) : target; }
  /// `rows` [n] or [n, classes], and zeros in ignored rows.
  Value where_counted(Value rows) const;
};

}  // namespace weft::ir
