#include "ops/shared/cross_entropy.h"

namespace weft::ops {

struct CrossEntropyWithGradAttrs : ir::CrossEntropyAttrs {
  bool wide = false;
  static constexpr auto fields = std::tuple_cat(
      ir::CrossEntropyAttrs::fields,
      ir::fields("wide", &CrossEntropyWithGradAttrs::wide, "summed", &CrossEntropyWithGradAttrs::summed));
};

static Result<std::vector<TensorType>> infer(ir::Types in, const CrossEntropyWithGradAttrs& a) {
  WEFT_CHECK(
      ir::check_cross_entropy("cross_entropy_with_grad", in[0], in[1], in.has(3) ? &in[3] : nullptr, a));
  const TensorType loss{a.wide && is_half(in[0].dtype) ? DType::f32 : in[0].dtype, {}};
  if (!(in[2] == loss))
    return invalid("cross_entropy_with_grad: dloss must be of the loss's type, {}, got {}", text(loss),
                   text(in[2]));
  return std::vector<TensorType>{in[0], loss};
}

static ir::ValueList decompose(ir::Builder& b, ir::Values in, const CrossEntropyWithGradAttrs& a) {
  const Attr ignored{"ignore_index", a.ignore_index}, smoothing{"label_smoothing", a.label_smoothing},
      summed{"summed", int64_t{a.summed}}, wide{"wide", int64_t{a.wide}};
  return {b.one("cross_entropy_grad", {in[0], in[1], in[2], in[3]}, {ignored, smoothing, summed}),
          b.one("cross_entropy", {in[0], in[1], in[3]}, {ignored, smoothing, wide, summed})};
}

static constexpr ir::Op<CrossEntropyWithGradAttrs> spec = {
    .name = "cross_entropy_with_grad",
    .doc =
        "The gradient of cross_entropy for its logits, and the loss itself, from one reading of the logits.\n"
        "The compiler makes it of the two where a step of training has both.\n\n"
        "Shape    logits, target and weight as in cross_entropy, dloss as the loss; dlogits as the logits.\n"
        "DType    as cross_entropy and cross_entropy_grad.\n"
        "Numerics as theirs.\n"
        "Grad     by the decomposition.\n"
        "Errors   as theirs.",
    .inputs = {"logits", "target", "dloss", "weight"},
    .outputs = {"dlogits", "loss"},
    .n_optional = 1,
    .infer_many = infer,
    .decompose_many = decompose,
};
extern constinit const ir::OpDef cross_entropy_with_grad = ir::define<spec>();

}  // namespace weft::ops
