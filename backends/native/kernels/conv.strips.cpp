#include <algorithm>
#include <cstring>

#include "backends/native/packing.h"
#include "backends/native/scratch.h"
#include "weft/shared/ops/conv.hpp"

// conv as a product of matrices: y[o, p] = sum over (c, k) of w[o, (c, k)] columns[(c, k), p]. The columns of
// a strip of p are gathered from x when they are used, and stay in L2; the weights are packed once for each
// block of (c, k), or come packed if they are constant.
namespace weft::native {

using namespace weft::backend;

namespace {

constexpr int64_t kStrip = 96, kDepth = 384;

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

Geometry geometry(const Launch& l) {
  const TensorView x = l.input(0), w = l.input(1), y = l.output(0);
  const auto list = [&](const char* name, int64_t i, int64_t missing) {
    const auto values = l.call().attr(name).ints();
    return values.empty() ? missing : values[static_cast<size_t>(i)];
  };
  Geometry g{x.dim(0), x.dim(1), w.dim(0), l.call().attr("groups").integer(1), {}, {}};
  const int64_t spatial = x.rank() - 2;
  for (int64_t i = 0; i < spatial; ++i) {
    Axis& a = spatial == 2 && i == 0 ? g.rows : g.columns;
    a = {x.dim(2 + i),          w.dim(2 + i), y.dim(2 + i), list("stride", i, 1), list("padding", 2 * i, 0),
         list("dilation", i, 1)};
  }
  return g;
}

// One row of columns: element (channel, ky, kx) of the windows at places [p, p + n).
void gather_row(const Geometry& g, const float* channel, int64_t ky, int64_t kx, int64_t p, int64_t n,
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
      } else {
        for (int64_t i = left; i < right; ++i) to[i] = row[first + i * step];
      }
      std::fill_n(to + right, run - right, 0.0f);
    }
    p += run, to += run;
  }
}

void gather_strip(const Geometry& g, const float* x, int64_t k0, int64_t depth, int64_t p, int64_t n,
                  float* to) {
  const int64_t window = g.rows.kernel * g.columns.kernel;
  for (int64_t k = k0; k < k0 + depth; ++k, to += kStrip) {
    const int64_t channel = k / window, at = k % window;
    gather_row(g, x + channel * g.rows.size * g.columns.size, at / g.columns.kernel, at % g.columns.kernel, p,
               n, to);
    std::fill_n(to + n, kStrip - n, 0.0f);
  }
}

// Packed filters of one group: blocks of depth, each with its rows rounded up to whole panels.
int64_t packed_rows(const Geometry& g) {
  const int64_t panel = gemm_table<float>().panel_rows;
  return (g.group_filters() + panel - 1) / panel * panel;
}
Product<float> filters_of(const Geometry& g, int64_t group, const float* weights) {
  const int64_t rows = g.group_filters(), depth = g.depth();
  return {.m = rows, .k = depth, .a = weights + group * rows * depth, .a_row = depth};
}

void run_group(const Launch& l, const Geometry& g, int64_t group) {
  const GemmTable<float>& gemm = gemm_table<float>();
  const int64_t rows = g.group_filters(), depth = g.depth(), places = g.places();
  const int64_t strips = (places + kStrip - 1) / kStrip, image = g.rows.size * g.columns.size;
  const int64_t padded = packed_rows(g);
  const float* given = l.input(1).data<float>();
  const bool ready = l.input(1).layout() != 0;
  float* own = ready ? nullptr : scratch<float>(Scratch::packed_b, padded * std::min(depth, kDepth));
  for (int64_t k = 0; k < depth; k += kDepth) {
    const int64_t part = std::min(kDepth, depth - k);
    if (!ready) gemm.pack_a(filters_of(g, group, given), k, part, 0, rows, own);
    const float* packed = ready ? given + padded * (group * depth + k) : own;
    l.host().parallel_for(g.images * strips, 1, [&](int64_t begin, int64_t end) {
      float* columns = scratch<float>(Scratch::columns, kDepth * kStrip);
      for (int64_t t = begin; t < end; ++t) {
        const int64_t n = t / strips, p = t % strips * kStrip, count = std::min(kStrip, places - p);
        const float* x = l.input(0).data<float>() + (n * g.channels + group * g.group_channels()) * image;
        float* y = l.output(0).data<float>() + (n * g.filters + group * rows) * places + p;
        gather_strip(g, x, k, part, p, count, columns);
        gemm.strip(packed, rows, part, columns, kStrip, count, y, places, k > 0);
      }
    });
  }
}

Support accepts(const OpCall& c) {
  if (auto s = shared::detail::accepts_conv(c); !s) return s;
  if (c.input(0).dtype() != DType::f32) return Support::no("dtype must be f32, got {}", c.input(0).dtype());
  const int64_t rank = c.input(0).rank();
  return rank == 3 || rank == 4 ? Support::yes() : Support::no("one or two spatial axes, got {}", rank - 2);
}

// The part of the geometry that packing needs: the filters'.
Geometry filters(std::span<const int64_t> w, int64_t groups) {
  Geometry g{0, w[1] * groups, w[0], groups, {}, {}};
  if (w.size() == 4) g.rows.kernel = w[2];
  g.columns.kernel = w.back();
  return g;
}
int64_t groups_of(const OpCall& c) { return c.attr("groups").integer(1); }

Outcome prepare(const OpCall& c, weft_plan& plan) {
  const TypeView w = c.input(1);
  if (!w.constant()) return Outcome::ok();
  const Geometry g = filters(w.max(), groups_of(c));
  const int64_t size = g.groups * packed_rows(g) * g.depth();
  if (size >= kLeastPacked)
    want_packed(plan, 1,
                format("native.filters.1 f32 {} groups of [{}, {}] by {} in blocks of {}", g.groups,
                       g.group_filters(), g.depth(), gemm_table<float>().panel_rows, kDepth),
                static_cast<uint64_t>(size) * sizeof(float));
  return Outcome::ok();
}

Outcome pack(const weft_plan& plan, int64_t, TensorView from, TensorView to, const Host& host) {
  const Geometry g = filters(from.dims(), groups_of(OpCall(plan.call)));
  host.parallel_for(g.groups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group)
      for (int64_t k = 0; k < g.depth(); k += kDepth)
        gemm_table<float>().pack_a(filters_of(g, group, from.data<float>()), k,
                                   std::min(kDepth, g.depth() - k), 0, g.group_filters(),
                                   to.data<float>() + packed_rows(g) * (group * g.depth() + k));
  });
  return Outcome::ok();
}

Outcome launch(const Launch& l) {
  const Geometry g = geometry(l);
  if (l.output(0).size() == 0) return Outcome::ok();
  if (g.depth() == 0) {
    std::fill_n(l.output(0).data<float>(), l.output(0).size(), 0.0f);
    return Outcome::ok();
  }
  for (int64_t group = 0; group < g.groups; ++group) run_group(l, g, group);
  return Outcome::ok();
}

}  // namespace

extern const KernelRecord conv_strips = {.op = "conv",
                                         .variant = "strips",
                                         .reads = {"stride", "padding", "dilation", "groups"},
                                         .accepts = accepts,
                                         .prepare = prepare,
                                         .release = release_packed,
                                         .launch = launch,
                                         .pack = pack};

}  // namespace weft::native
