#include "ops/shared/rules.h"

namespace weft::ops {

struct CumsumAttrs {
  int64_t axis = 0;
  bool exclusive = false;
  bool reverse = false;
  static constexpr auto fields = ir::fields("axis", &CumsumAttrs::axis, "exclusive", &CumsumAttrs::exclusive,
                                            "reverse", &CumsumAttrs::reverse);
};

static Result<TensorType> infer(ir::Types in, const CumsumAttrs& a) {
  WEFT_TRY([[maybe_unused]] const int64_t axis, ir::resolve_axis("cumsum", a.axis, in[0].rank()));
  if (!is_compute(in[0].dtype) || in[0].dtype == DType::boolean)
    return invalid("cumsum: wants a number type, got {}", text(in[0]));
  return in[0];
}

// x[i] is in every total from i: its gradient is the reverse cumsum of dy.
static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const CumsumAttrs& a) {
  return {b.one("cumsum", {ctx.dout(0)},
                {{"axis", a.axis}, {"exclusive", int64_t{a.exclusive}}, {"reverse", int64_t{!a.reverse}}})};
}

static constexpr ir::Op<CumsumAttrs> spec = {
    .name = "cumsum",
    .doc =
        "Running totals along `axis`: each element with all before it.\n\n"
        "Shape    same as `x`.\n"
        "DType    same as `x`; f16 and bf16 accumulate in f32 or better, integers wrap around.\n"
        "Numerics with `exclusive` an element is not in its own total, so the first is 0; with `reverse` the "
        "totals run\n"
        "         from the end.\n"
        "Grad     needs nothing.\n"
        "Errors   invalid_argument when `axis` is outside [-rank, rank).",
    .inputs = {"x"},
    .infer = infer,
    .grad = grad,
};
extern constinit const ir::OpDef cumsum = ir::define<spec>();

}  // namespace weft::ops
