#pragma once
#include <algorithm>
#include <cstring>

#include "weft/backend.hpp"

// What the kernels of conv share: its sizes, and rows of the matrix whose columns are the windows of x.
namespace weft::native {

/// One spatial axis; one-dimensional convolutions have a first axis of size one.
struct Axis {
  int64_t size = 1, kernel = 1, count = 1, stride = 1, before = 0, dilation = 1;
};
struct Geometry {
  int64_t images, channels, filters, groups;
  Axis rows, columns;

  int64_t group_channels() const { return channels / groups; }
  int64_t group_filters() const { return filters / groups; }
  int64_t depth() const { return group_channels() * rows.kernel * columns.kernel; }
  int64_t places() const { return rows.count * columns.count; }
};

/// Of a conv with these attributes and tensors.
inline Geometry geometry(const backend::OpCall& conv, backend::TensorView x, backend::TensorView w,
                         backend::TensorView y) {
  const auto list = [&](const char* name, int64_t i, int64_t missing) {
    const auto values = conv.attr(name).ints();
    return values.empty() ? missing : values[static_cast<size_t>(i)];
  };
  Geometry g{x.dim(0), x.dim(1), w.dim(0), conv.attr("groups").integer(1), {}, {}};
  const int64_t spatial = x.rank() - 2;
  for (int64_t i = 0; i < spatial; ++i) {
    Axis& a = spatial == 2 && i == 0 ? g.rows : g.columns;
    a = {x.dim(2 + i),          w.dim(2 + i), y.dim(2 + i), list("stride", i, 1), list("padding", 2 * i, 0),
         list("dilation", i, 1)};
  }
  return g;
}

/// Are the columns of the matrix rows of x as they are?
inline bool reads_in_place(const Geometry& g) {
  const auto plain = [](const Axis& a) {
    return a.kernel == 1 && a.stride == 1 && a.before == 0 && a.count == a.size;
  };
  return plain(g.rows) && plain(g.columns);
}

// One row of columns: element (channel, ky, kx) of the windows at places [p, p + n).
inline void gather_row(const Geometry& g, const float* channel, int64_t ky, int64_t kx, int64_t p, int64_t n,
                       float* to) {
  const int64_t width = g.columns.count;
  for (const int64_t end = p + n; p < end;) {
    const int64_t oy = p / width, ox = p % width, run = std::min(end - p, width - ox);
    const int64_t iy = oy * g.rows.stride + ky * g.rows.dilation - g.rows.before;
    if (iy < 0 || iy >= g.rows.size) {
      std::fill_n(to, run, 0.0f);
    } else {
      const float* row = channel + iy * g.columns.size;
      const int64_t step = g.columns.stride, first = ox * step + kx * g.columns.dilation - g.columns.before;
      // Places whose element lies inside the row: [left, right).
      const int64_t left = std::clamp<int64_t>(first >= 0 ? 0 : (-first + step - 1) / step, 0, run);
      const int64_t right = std::clamp<int64_t>((g.columns.size - first + step - 1) / step, left, run);
      std::fill_n(to, left, 0.0f);
      if (step == 1) {
        std::memcpy(to + left, row + first + left, static_cast<size_t>(right - left) * sizeof(float));
      } else if (step == 2) {  // known to the compiler, which makes vectors of it
        for (int64_t i = left; i < right; ++i) to[i] = row[first + i * 2];
      } else {
        for (int64_t i = left; i < right; ++i) to[i] = row[first + i * step];
      }
      std::fill_n(to + right, run - right, 0.0f);
    }
    p += run, to += run;
  }
}

/// The part of the geometry that packing needs: the filters'.
inline Geometry filters(std::span<const int64_t> w, int64_t groups) {
  Geometry g{0, w[1] * groups, w[0], groups, {}, {}};
  if (w.size() == 4) g.rows.kernel = w[2];
  g.columns.kernel = w.back();
  return g;
}
}  // namespace weft::native
