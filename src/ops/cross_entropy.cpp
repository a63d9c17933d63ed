#include "ops/shared/cross_entropy.h"
#include "ops/shared/pieces.h"

namespace weft::ops {

struct CrossEntropyLossAttrs : ir::CrossEntropyAttrs {
  bool wide = false;
  static constexpr auto fields =
      std::tuple_cat(ir::CrossEntropyAttrs::fields, ir::fields("wide", &CrossEntropyLossAttrs::wide),
                     ir::fields("summed", &CrossEntropyLossAttrs::summed));
};

static Result<TensorType> infer(ir::Types in, const CrossEntropyLossAttrs& a) {
  WEFT_CHECK(ir::check_cross_entropy("cross_entropy", in[0], in[1], in.has(2) ? &in[2] : nullptr, a));
  return TensorType{a.wide && is_half(in[0].dtype) ? DType::f32 : in[0].dtype, {}};
}

// -log_softmax(x) is log(sum(exp(x))) - x, with the row maximum subtracted first.
static ir::Value decompose(ir::Builder& b, ir::Values in, const CrossEntropyLossAttrs& a) {
  const ir::CrossEntropy it(b, in[0], in[1], in[2], a);
  const auto shifted = b.sub(it.x, b.max(it.x, 1)), normal = b.log(b.sum(b.exp(shifted), 1));
  if (!it.of_classes)
    return b.div(b.sum_all(b.mul(it.aimed(), it.weighted(b.sub(normal, shifted)))), it.divisor);
  const auto mean = [&](ir::Value rows) { return b.div(b.sum_all(it.where_counted(rows)), it.divisor); };
  auto rows = b.sub(b.reshape(normal, it.target.shape()), b.gather(shifted, it.safe, 1, 1));
  if (it.weight) rows = b.mul(rows, it.row_weight());
  if (it.smoothing == 0) return mean(rows);
  // Two means: if all counted weights are zero, the first is NaN, and so is the loss.
  const auto all = b.one("sum", {it.weighted(b.sub(normal, shifted))}, {{"axes", Shape{1}}});
  return b.add(b.mul(mean(rows), it.kept), b.mul(mean(all), it.share()));
}

// The rarely used gradients of the target and the weight; that of the logits is an op of its own.
static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const CrossEntropyLossAttrs& a) {
  const auto x = ctx.in(0), target = ctx.in(1), weight = ctx.has(2) ? ctx.in(2) : ir::Value();
  ir::Grads g(3);
  if (ctx.wants(0))
    g[0] = b.one("cross_entropy_grad", {x, target, ctx.dout(0), weight},
                 {{"ignore_index", a.ignore_index},
                  {"label_smoothing", a.label_smoothing},
                  {"summed", int64_t{a.summed}}});
  if (!ctx.wants(1) && !ctx.wants(2)) return g;
  const bool soft = is_float(target.dtype());
  const ir::CrossEntropy it(b, x, target, weight, a);
  const auto scale = b.div(ctx.dout(0), it.divisor);
  const auto costs = b.neg(b.one("log_softmax", {it.x}, {{"axis", int64_t{1}}}));  // of each class
  if (ctx.wants(1)) g[1] = b.mul(it.weighted(costs), b.mul(scale, it.kept));
  if (!ctx.wants(2)) return g;
  const Shape classes = {it.x.shape()[1]};
  ir::Value sums;  // what each class adds to the sum for a weight of 1; for the mean over classes less the
                   // loss: the divisor grows too
  if (soft) {
    sums = b.sum_to(b.mul(it.aimed(), costs), classes);
  } else {
    auto own = b.mul(b.gather(costs, it.safe, 1, 1), it.kept);
    if (!a.summed) own = b.sub(own, ctx.out(0));
    sums = b.scatter_add(b.full(0, classes, it.x.dtype()), it.safe, it.where_counted(own), 0, 0);
    if (it.smoothing > 0) sums = b.add(sums, b.mul(b.sum_to(it.where_counted(costs), classes), it.share()));
  }
  g[2] = b.mul(sums, scale);
  return g;
}

static constexpr ir::Op<CrossEntropyLossAttrs> spec = {
    .name = "cross_entropy",
    .doc =
        "Mean negative log-likelihood of the target, from logits.\n\n"
        "Shape    logits [n, classes]; target [n], a class for each row, or [n, classes], probabilities; "
        "weight\n"
        "         [classes], 1 where absent. The result has rank 0.\n"
        "DType    logits, weight and probabilities one float dtype, which is the loss's, too; with `wide`, "
        "f16 "
        "and bf16\n"
        "         give an f32 loss, of their logits as they are. Classes i32 or i64.\n"
        "Numerics subtracts the row maximum first, so no finite logit overflows. Rows whose class is "
        "`ignore_index` do\n"
        "         not count. `label_smoothing` s aims at 1 - s of the target and s / classes of each class. "
        "With\n"
        "         classes the mean is weighted by weight[target], and NaN if no row counts; with "
        "probabilities "
        "the sum\n"
        "         is divided by n. With `summed` nothing is divided. All as in PyTorch.\n"
        "Grad     needs the inputs and the loss; for logits, probabilities and weight.\n"
        "Errors   invalid_argument for shapes, dtypes, label_smoothing outside [0, 1], and ignore_index >= 0 "
        "with\n"
        "         probabilities; a device error for a class outside [0, classes) that is not `ignore_index`; "
        "compiled\n"
        "         text can't report one and gives NaN.\n"
        "Source   Szegedy et al., Rethinking the inception architecture (CVPR 2016), for label smoothing.",
    .inputs = {"logits", "target", "weight"},
    .outputs = {"loss"},
    .n_optional = 1,
    .saves = ir::saves::inputs | ir::saves::outputs,
    .infer = infer,
    .decompose = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef cross_entropy = ir::define<spec>();

}  // namespace weft::ops
