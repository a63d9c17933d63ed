#include "ops/shared/cross_entropy.h"

namespace weft::ir {

Status check_cross_entropy(const char* op, const TensorType& logits, const TensorType& target,
                           const TensorType* weight, const CrossEntropyAttrs& a) {
  if (!is_float(logits.dtype) || !is_compute(logits.dtype) || logits.rank() != 2)
    return invalid("{}: logits must be float[n, classes], got {}", op, text(logits));
  const bool of_classes =
      (target.dtype == DType::i32 || target.dtype == DType::i64) && target.shape == Shape{logits.shape[0]};
  if (!of_classes && !(target == logits))
    return invalid("{}: target must be classes, i32 or i64 [{}], or probabilities, {}; got {}", op,
                   logits.shape[0].text(), text(logits), text(target));
  if (weight && !(*weight == TensorType{logits.dtype, {logits.shape[1]}}))
    return invalid("{}: weight must be {}[{}], got {}", op, name(logits.dtype), logits.shape[1].text(),
                   text(*weight));
  if (!of_classes && a.ignore_index >= 0)
    return invalid("{}: ignore_index is for classes, got {} and a target of probabilities", op,
                   a.ignore_index);
  if (!(a.label_smoothing >= 0 && a.label_smoothing <= 1))
    return invalid("{}: label_smoothing must be in [0, 1], got {}", op, a.label_smoothing);
  return {};
}

CrossEntropy::CrossEntropy(Builder& builder, Value logits, Value aim, Value class_weight,
                           const CrossEntropyAttrs& a)
    : b(builder),
      x(logits),
      target(aim),
      weight(class_weight),
      of_classes(!is_float(aim.dtype())),
      kept(1 - a.label_smoothing),
      smoothing(a.label_smoothing) {
  if (a.summed) divisor = b.full(1, {}, x.dtype());
  if (!of_classes) {
    if (!a.summed) divisor = b.full(1, {}, x.dtype(), x.shape()[0]);
    return;
  }
  const auto ignored = b.equal(target, b.full(static_cast<double>(a.ignore_index), {}, target.dtype()));
  counted = b.equal(ignored, b.full(0, {}, DType::boolean));
  safe = b.where(ignored, 0, target);
  if (a.summed) return;
  const auto ones = weight ? row_weight() : b.full(1, target.shape(), x.dtype());
  divisor = b.sum_all(where_counted(ones));
}

Value CrossEntropy::share() const {
  return b.div(b.full(smoothing, {}, x.dtype()), b.full(1, {}, x.dtype(), x.shape()[1]));
}

Value CrossEntropy::where_counted(Value rows) const {
  const Dim n = target.shape()[0];
  return b.where(rows.shape().size() == 1 ? counted : b.reshape(counted, {n, 1}), rows, 0);
}

}  // namespace weft::ir
