#include <algorithm>

#include "backends/native/rows.h"
#include "backends/native/scratch.h"
#include "weft/backend.hpp"
#include "weft/shared/primitives.hpp"

// max_pool over one or two axes: a row of results takes the largest of whole rows of x, shifted by the places
// in the window.
namespace weft::native {

using namespace weft::backend;

namespace {

struct Axis {
  int64_t size = 1, count = 1, kernel = 1, stride = 1, before = 0, dilation = 1;
};

/// The windows of a call along its last two axes; one-dimensional ones have a first axis of size one.
struct Windows {
  Axis rows, columns;

  Windows(const OpCall& c, std::span<const int64_t> x, std::span<const int64_t> y) {
    const auto kernel = c.attr("kernel").ints();
    const auto list = [&](const char* name, size_t i, int64_t missing) {
      const auto values = c.attr(name).ints();
      return values.empty() ? missing : values[i];
    };
    for (size_t i = 0; i < kernel.size(); ++i) {
      const size_t at = x.size() - kernel.size() + i;
      Axis& a = i + 1 == kernel.size() ? columns : rows;
      a = {x[at],
           y[at],
           kernel[i],
           list("stride", i, kernel[i]),
           list("padding", 2 * i, 0),
           list("dilation", i, 1)};
    }
  }
};

// to[o] = the larger of to[o] and row[o * stride + first], where that lies in the row; a NaN wins.
void take_largest(const Axis& a, const float* row, int64_t place, float* to) {
  const int64_t first = place * a.dilation - a.before;
  const int64_t left = first >= 0 ? 0 : (-first + a.stride - 1) / a.stride,
                right = std::clamp<int64_t>((a.size - first + a.stride - 1) / a.stride, 0, a.count);
  const float* from = row + first;
  for (int64_t o = left; o < right; ++o) {
    const float x = from[o * a.stride];
    to[o] = x > to[o] || x != x ? x : to[o];  // a NaN that is there stays: nothing is larger
  }
}

// The largest of each column of a window's rows, then of each window.
void pool(const Windows& w, const float* image, int64_t row, float* to) {
  const int64_t size = w.columns.size;
  float* columns = scratch<float>(Scratch::rows, size);
  std::fill_n(columns, size, -HUGE_VALF);
  for (int64_t ky = 0; ky < w.rows.kernel; ++ky) {
    const int64_t y = row * w.rows.stride + ky * w.rows.dilation - w.rows.before;
    if (y < 0 || y >= w.rows.size) continue;
    const float* from = image + y * size;
    for (int64_t i = 0; i < size; ++i) {
      const float x = from[i];
      columns[i] = x > columns[i] || x != x ? x : columns[i];
    }
  }
  std::fill_n(to, w.columns.count, -HUGE_VALF);
  for (int64_t kx = 0; kx < w.columns.kernel; ++kx) take_largest(w.columns, columns, kx, to);
}

Support accepts(const OpCall& c) {
  if (c.n_inputs() != 1 || c.n_outputs() != 1 || !c.input(0).has()) return Support::no("wants one input");
  const TypeView x = c.input(0), y = c.output(0);
  if (x.dtype() != DType::f32 || y.dtype() != DType::f32)
    return Support::no("dtype must be f32, got {}", x.dtype());
  const auto axes = static_cast<int64_t>(c.attr("kernel").ints().size());
  if (axes < 1 || axes > 2 || x.rank() < axes || y.rank() != x.rank())
    return Support::no("wants windows over one or two of the axes, got {} of {}", axes, x.rank());
  for (const char* name : {"stride", "padding", "dilation"}) {
    const auto given = static_cast<int64_t>(c.attr(name).ints().size());
    if (given != 0 && given != axes * (name[0] == 'p' ? 2 : 1))
      return Support::no("{} has {} entries for {} axes", name, given, axes);
  }
  return Support::yes();
}

Outcome launch(const Launch& l) {
  const TensorView x = l.input(0), y = l.output(0);
  const Windows w(l.call(), x.dims(), y.dims());
  if (y.size() == 0) return Outcome::ok();
  constexpr int64_t kElementsAThread = 1 << 13;
  const int64_t rows = y.size() / w.columns.count, cost = w.columns.count * w.rows.kernel * w.columns.kernel;
  l.host().parallel_for(rows, std::max<int64_t>(1, kElementsAThread / cost), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      pool(w, x.data<float>() + r / w.rows.count * w.rows.size * w.columns.size, r % w.rows.count,
           y.data<float>() + r * w.columns.count);
  });
  return Outcome::ok();
}

}  // namespace

extern const KernelRecord max_pool_rows = {.op = "max_pool",
                                           .variant = "rows",
                                           .reads = {"kernel", "stride", "padding", "dilation", "ceil_mode"},
                                           .accepts = accepts,
                                           .launch = launch};

}  // namespace weft::native
