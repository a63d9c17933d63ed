#include "ops/shared/rules.h"

namespace weft::ops {

struct AdaptiveAvgPoolAttrs {
  Shape size;
  static constexpr auto fields = ir::fields("size", &AdaptiveAvgPoolAttrs::size);
};

static Result<TensorType> infer(ir::Types in, const AdaptiveAvgPoolAttrs& a) {
  WEFT_TRY(TensorType y, ir::infer_float_unary("adaptive_avg_pool", in));
  if (a.size.empty() || a.size.size() > y.shape.size())
    return invalid("adaptive_avg_pool: wants sizes for some of the last axes of {}, got {}", text(in[0]),
                   text(a.size));
  for (size_t i = 0; i < a.size.size(); ++i) {
    Dim& n = y.shape[y.shape.size() - a.size.size() + i];
    if (!a.size[i].is_const() || a.size[i].value() < 1 || n.min() < 1)
      return invalid("adaptive_avg_pool: wants sizes of 1 or more from axes of 1 or more, got {} from {}",
                     text(a.size), text(in[0]));
    n = a.size[i];
  }
  return y;
}

// Window i of `count` covers elements floor(i n / count) to ceil((i + 1) n / count) of the axis. Lengths of
// windows differ by at most one, so each is gathered at the largest length, and surplus elements count as
// zero.
static ir::Value along(ir::Builder& b, ir::Value x, size_t axis, int64_t count) {
  const Dim n = x.shape()[axis];
  const auto number = [&](Dim d) { return b.full(1, {}, DType::i32, d); };
  const auto iota = [&](Dim d) { return b.one("iota", {}, {{"size", Shape{d}}}); };
  const Dim longest = floor_div(n, count) + (n.is_const() && n.value() % count == 0 ? 0 : 2);
  const auto i = b.reshape(iota(count), {count, 1});
  const auto start = b.div(b.mul(i, number(n)), number(count));
  const auto stop = b.div(b.add(b.mul(b.add(i, 1), number(n)), number(Dim(count - 1))), number(count));
  const auto at = b.add(start, iota(longest)), inside = b.less(at, stop);
  Shape rows = {count, longest}, lengths = {count};
  for (size_t d = axis + 1; d < x.shape().size(); ++d) rows.push_back(1), lengths.push_back(1);
  const auto windows = b.gather(x, b.where(inside, at, 0), static_cast<int64_t>(axis), 0);
  const auto used = b.where(b.reshape(inside, rows), windows, 0);
  const auto sums = b.one("sum", {used}, {{"axes", Shape{Dim(axis + 1)}}});
  return b.div(sums, b.reshape(b.cast(b.sub(stop, start), x.dtype()), lengths));
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const AdaptiveAvgPoolAttrs& a) {
  auto x = in[0];
  for (size_t i = 0; i < a.size.size(); ++i)
    x = along(b, x, x.shape().size() - a.size.size() + i, a.size[i].value());
  return x;
}

static constexpr ir::Op<AdaptiveAvgPoolAttrs> spec = {
    .name = "adaptive_avg_pool",
    .doc =
        "Means over as many windows as `size` says, which cover the last axes evenly.\n\n"
        "Shape    x [..., n...] -> [..., size...].\n"
        "DType    floats; f16 and bf16 compute in f32.\n"
        "Numerics window i of s covers elements floor(i n / s) up to ceil((i + 1) n / s), so they may "
        "overlap.\n"
        "Grad     by the decomposition.\n"
        "Errors   invalid_argument when a size is below 1 or an axis may be empty.",
    .inputs = {"x"},
    .infer = infer,
    .decompose = decompose,
};
extern constinit const ir::OpDef adaptive_avg_pool = ir::define<spec>();

}  // namespace weft::ops
