#include "ops/shared/cross_entropy.h"

namespace weft::ops {

struct CrossEntropyGradAttrs : ir::CrossEntropyAttrs {
  static constexpr auto fields =
      std::tuple_cat(ir::CrossEntropyAttrs::fields, ir::fields("summed", &CrossEntropyGradAttrs::summed));
};

static Result<TensorType> infer(ir::Types in, const CrossEntropyGradAttrs& a) {
  WEFT_CHECK(ir::check_cross_entropy("cross_entropy_grad", in[0], in[1], in.has(3) ? &in[3] : nullptr, a));
  const DType t = in[0].dtype, of_loss = in[2].dtype;
  if (in[2].rank() != 0 || (of_loss != t && !(is_half(t) && of_loss == DType::f32)))
    return invalid("cross_entropy_grad: dloss must be a {}{} scalar, got {}", name(t),
                   is_half(t) ? " or f32" : "", text(in[2]));
  return in[0];
}

// (softmax(x) sum over c of t - t) dloss / divisor, with the t of ir/cross_entropy.h.
static ir::Value decompose(ir::Builder& b, ir::Values in, const CrossEntropyGradAttrs& a) {
  const ir::CrossEntropy it(b, in[0], in[1], in[3], a);
  const Dim n = it.x.shape()[0];
  const auto p = b.one("softmax", {it.x}, {{"axis", int64_t{1}}}), scale = b.div(in[2], it.divisor);
  if (!it.of_classes) {
    const auto t = it.weighted(it.aimed());
    return b.mul(b.sub(b.mul(p, b.sum(t, 1)), t), scale);
  }
  // For the target's class, by rows; the other terms of t are equal in all rows.
  auto own = it.weight ? b.mul(it.row_weight(), scale) : b.broadcast(scale, {n});
  auto slopes = b.mul(p, it.weight ? b.reshape(own, {n, 1}) : scale);
  if (it.smoothing > 0) {
    own = b.mul(own, it.kept);
    const auto rest = b.mul(it.weighted(b.broadcast(it.share(), {it.x.shape()[1]})), scale);
    slopes = b.sub(b.mul(p, b.add(b.reshape(own, {n, 1}), b.sum_all(rest))), rest);
  }
  return b.scatter_add(it.where_counted(slopes), it.safe, it.where_counted(b.neg(own)), 1, 1);
}

static constexpr ir::Op<CrossEntropyGradAttrs> spec = {
    .name = "cross_entropy_grad",
    .doc =
        "The gradient of cross_entropy(logits, target, weight) for the logits, from that of the loss.\n\n"
        "Shape    logits, target and weight as there, dloss rank 0; the result as the logits.\n"
        "DType    logits, weight, dloss and probabilities one float dtype; dloss may be f32 where the others "
        "are "
        "f16 or\n"
        "         bf16. Classes i32 or i64.\n"
        "Numerics zero in rows that do not count.\n"
        "Grad     by the decomposition.\n"
        "Errors   as cross_entropy; compiled text can't report a class outside [0, classes), and subtracts\n"
        "         nothing in its row.",
    .inputs = {"logits", "target", "dloss", "weight"},
    .outputs = {"dlogits"},
    .n_optional = 1,
    .infer = infer,
    .decompose = decompose,
};
extern constinit const ir::OpDef cross_entropy_grad = ir::define<spec>();

}  // namespace weft::ops
