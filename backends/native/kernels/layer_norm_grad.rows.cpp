#include <cmath>
#include <vector>

#include "backends/native/row_launch.h"
#include "backends/native/rows.h"

// Each row of dx is independent. Gradients of weight and bias are summed in blocks of rows, whose number
// depends on the sizes alone, so the bits do not depend on the threads.
namespace weft::native {

using namespace weft::backend;

static Support accepts(const OpCall& c) {
  if (c.n_inputs() != 3 || c.n_outputs() != 3)
    return Support::no("wants 3 inputs and 3 outputs, got {} and {}", c.n_inputs(), c.n_outputs());
  const TypeView x = c.input(0), dy = c.input(1);
  if (!x.has() || !dy.has() || !std::ranges::equal(x.max(), dy.max()) ||
      !std::ranges::equal(x.max(), c.output(0).max()))
    return Support::no("x, dy and dx must have one shape");
  for (int64_t i = 0; i < 3; ++i)
    for (const TypeView t : {c.input(i), c.output(i)})
      if (t.has() && t.dtype() != DType::f32) return Support::no("dtype must be f32, got {}", t.dtype());
  if (c.accumulate() >> 1 != 0) return Support::no("adds to dx only");
  if (c.accumulate() & c.updates()) return Support::no("what it adds to is no operand");
  const int64_t trailing = c.attr("trailing").integer(1);
  if (trailing < 1 || trailing > x.rank())
    return Support::no("trailing must be in [1, {}], got {}", x.rank(), trailing);
  for (const TypeView t : {c.input(2), c.output(1), c.output(2)})
    if (auto s = one_row(t, x.max().last(static_cast<size_t>(trailing))); !s) return s;
  return Support::yes();
}

static NormedRow normed(const float* x, const float* dy, const float* weight, int64_t n, double epsilon) {
  const auto count = static_cast<double>(n);
  const auto mean = static_cast<float>(sum(x, n) / count);
  return {x, dy, weight, mean,
          static_cast<float>(1 / std::sqrt(sum_of_squares(x, mean, n) / count + epsilon))};
}

static Outcome launch(const Launch& l) {
  const TensorView x = l.input(0), dy = l.input(1), weight = l.input(2), dx = l.output(0);
  const int64_t n = shared::product(x.dims().last(static_cast<size_t>(l.call().attr("trailing").integer(1)))),
                rows = n == 0 ? 0 : x.size() / n, block = std::clamp<int64_t>((rows + 15) / 16, 8, 1024),
                blocks = (rows + block - 1) / block;
  const double epsilon = l.call().attr("epsilon").real(1e-5);
  const bool adds = l.call().accumulates(0);
  std::vector<float> part(static_cast<size_t>(blocks * 2 * n));  // dweight and dbias of each block
  const auto grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, block * n));
  l.host().parallel_for(blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin * block; r < std::min(rows, end * block); ++r) {
      const NormedRow row = normed(x.data<float>() + r * n, dy.data<float>() + r * n,
                                   weight.has() ? weight.data<float>() : nullptr, n, epsilon);
      const NormSums s = norm_sums(row, n);
      float* sums = part.data() + r / block * 2 * n;
      norm_grad(row, static_cast<float>(s.slope / static_cast<double>(n)),
                static_cast<float>(s.along / static_cast<double>(n)), dx.data<float>() + r * n, adds, sums,
                sums + n, n);
    }
  });
  for (int64_t k = 0; k < 2; ++k)
    for (int64_t i = 0; i < n; ++i) {
      double total = 0;
      for (int64_t b = 0; b < blocks; ++b) total += double{part[static_cast<size_t>((2 * b + k) * n + i)]};
      l.output(1 + k).data<float>()[i] = static_cast<float>(total);
    }
  return Outcome::ok();
}

extern const KernelRecord layer_norm_grad_rows = {.op = "layer_norm_grad",
                                                  .variant = "rows",
                                                  .reads = {"epsilon", "trailing"},
                                                  .accepts = accepts,
                                                  .launch = launch,
                                                  .accumulates = true,
                                                  .in_place = true};

}  // namespace weft::native
