#pragma once
#include <cmath>
#include <vector>

#include "backends/native/row_launch.h"
#include "backends/native/rows.h"

// Shared by the gradients of layer_norm and rms_norm. Each row of dx is independent. Gradients of weight and
// bias are summed in blocks of rows, whose number depends on the sizes alone, so the bits do not depend on
// the threads.
namespace weft::native {

/// Accepts x, dy, an optional weight of the last `trailing` axes, and `results` results: dx, then like the
/// weight.
inline backend::Support accepts_norm_grad(const backend::OpCall& c, int64_t trailing, int64_t results) {
  using backend::Support;
  if (c.n_inputs() != 3 || c.n_outputs() != results)
    return Support::no("wants 3 inputs and {} outputs, got {} and {}", results, c.n_inputs(), c.n_outputs());
  const backend::TypeView x = c.input(0), dy = c.input(1);
  if (!x.has() || !dy.has() || !std::ranges::equal(x.max(), dy.max()) ||
      !std::ranges::equal(x.max(), c.output(0).max()))
    return Support::no("x, dy and dx must have one shape");
  for (int64_t i = 0; i < 3 + results; ++i)
    if (const auto t = i < 3 ? c.input(i) : c.output(i - 3); t.has() && t.dtype() != DType::f32)
      return Support::no("dtype must be f32, got {}", t.dtype());
  if (c.accumulate() >> 1 != 0) return Support::no("adds to dx only");
  if (c.accumulate() & c.updates()) return Support::no("what it adds to is no operand");
  if (trailing < 1 || trailing > x.rank())
    return Support::no("trailing must be in [1, {}], got {}", x.rank(), trailing);
  const auto row = x.max().last(static_cast<size_t>(trailing));
  if (auto s = one_row(c.input(2), row); !s) return s;
  for (int64_t i = 1; i < results; ++i)
    if (auto s = one_row(c.output(i), row); !s) return s;
  return Support::yes();
}

/// A row with its mean, which is 0 unless rows are `centered`, and scale.
inline NormedRow normed_row(const float* x, const float* dy, const float* weight, int64_t n, double epsilon,
                            bool centered) {
  const auto count = static_cast<double>(n);
  const auto mean = centered ? static_cast<float>(sum(x, n) / count) : 0;
  return {x, dy, weight, mean,
          static_cast<float>(1 / std::sqrt(sum_of_squares(x, mean, n) / count + epsilon))};
}

/// The gradients for rows of n elements; of the bias too if rows are `centered`.
inline backend::Outcome launch_norm_grad(const backend::Launch& l, int64_t n, bool centered) {
  const backend::TensorView x = l.input(0), dy = l.input(1), weight = l.input(2), dx = l.output(0);
  const int64_t rows = n == 0 ? 0 : x.size() / n, block = std::clamp<int64_t>((rows + 15) / 16, 8, 1024),
                blocks = (rows + block - 1) / block, sums_each = centered ? 2 : 1;
  const double epsilon = l.call().attr("epsilon").real(1e-5);
  const bool adds = l.call().accumulates(0);
  std::vector<float> part(static_cast<size_t>(blocks * sums_each * n));  // dweight and dbias of each block
  const auto grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, block * n));
  l.host().parallel_for(blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin * block; r < std::min(rows, end * block); ++r) {
      const NormedRow row = normed_row(x.data<float>() + r * n, dy.data<float>() + r * n,
                                       weight.has() ? weight.data<float>() : nullptr, n, epsilon, centered);
      const NormSums s = norm_sums(row, n);
      float* sums = part.data() + r / block * sums_each * n;
      norm_grad(row, centered ? static_cast<float>(s.slope / static_cast<double>(n)) : 0,
                static_cast<float>(s.along / static_cast<double>(n)), dx.data<float>() + r * n, adds, sums,
                centered ? sums + n : nullptr, n);
    }
  });
  for (int64_t k = 0; k < sums_each; ++k)
    for (int64_t i = 0; i < n; ++i) {
      double total = 0;
      for (int64_t b = 0; b < blocks; ++b)
        total += double{part[static_cast<size_t>((sums_each * b + k) * n + i)]};
      l.output(1 + k).data<float>()[i] = static_cast<float>(total);
    }
  return backend::Outcome::ok();
}

}  // namespace weft::native
