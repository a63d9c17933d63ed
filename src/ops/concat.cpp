#include "ops/shared/rules.h"

namespace weft::ops {

struct ConcatAttrs {
  int64_t axis = 0;
  static constexpr auto fields = ir::fields("axis", &ConcatAttrs::axis);
};

constexpr int kMost = ir::kMostOperands;

// a to h, then x9 to x32.
constexpr auto kLetters = [] {
  std::array<std::array<char, 4>, ir::kMostOperands> all{};
  for (size_t i = 0; i < all.size(); ++i) {
    const auto number = static_cast<char>(i + 1);
    if (i < ir::kMostParameters)
      all[i] = {static_cast<char>('a' + i)};
    else if (i < 9)
      all[i] = {'x', static_cast<char>('0' + number)};
    else
      all[i] = {'x', static_cast<char>('0' + number / 10), static_cast<char>('0' + number % 10)};
  }
  return all;
}();
constexpr auto kNames = [] {
  std::array<const char*, ir::kMostOperands> all{};
  for (size_t i = 0; i < all.size(); ++i) all[i] = kLetters[i].data();
  return all;
}();

static Result<TensorType> infer(ir::Types in, const ConcatAttrs& a) {
  WEFT_TRY(const int64_t axis, ir::resolve_axis("concat", a.axis, in[0].rank()));
  const auto at = static_cast<size_t>(axis);
  TensorType y = in[0];
  for (size_t i = 1; i < in.size(); ++i) {
    if (!in.has(i)) continue;
    bool fits = in[i].dtype == y.dtype && in[i].rank() == y.rank();
    for (size_t d = 0; fits && d < y.shape.size(); ++d) fits = d == at || in[i].shape[d] == y.shape[d];
    if (!fits)
      return invalid("concat: operands must differ along axis {} only, got {} and {}", axis, text(in[0]),
                     text(in[i]));
    y.shape[at] = y.shape[at] + in[i].shape[at];
  }
  return y;
}

// Each operand gets its own part back.
static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ConcatAttrs& a) {
  ir::Grads g(kMost);
  const auto axis = static_cast<size_t>(a.axis < 0 ? a.axis + ctx.in_type(0).rank() : a.axis);
  Dim start = 0;
  for (int i = 0; i < kMost; ++i) {
    if (!ctx.has(i)) continue;
    const Dim stop = start + ctx.in_type(i).shape[axis];
    if (ctx.wants(i))
      g[static_cast<size_t>(i)] =
          b.one("slice", {ctx.dout(0)}, {{"axis", a.axis}, {"start", Shape{start}}, {"stop", Shape{stop}}});
    start = stop;
  }
  return g;
}

static constexpr ir::Op<ConcatAttrs> spec = {
    .name = "concat",
    .doc =
        "Up to 32 tensors one after the other, along one axis; weft/lists.h takes any number.\n\n"
        "Shape    alike but for `axis`, whose sizes add up.\n"
        "DType    any, the same for all.\n"
        "Grad     needs nothing.\n"
        "Errors   invalid_argument for shapes and dtypes.",
    .inputs = kNames,
    .n_optional = kMost - 1,
    .traits = ir::Trait::movement,
    .infer = infer,
    .grad = grad,
};
extern constinit const ir::OpDef concat = ir::define<spec>();

}  // namespace weft::ops
