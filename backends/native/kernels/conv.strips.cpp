#include <algorithm>

#include "backends/native/convolution.h"
#include "backends/native/packing.h"
#include "backends/native/scratch.h"
#include "backends/native/split_convolution.h"
#include "weft/shared/ops/conv.hpp"

// conv as a product of matrices: y[o, p] = sum over (c, k) of w[o, (c, k)] columns[(c, k), p]. The columns of
// a strip of p are gathered from x when they are used, and stay in L2; the weights are packed once for each
// block of (c, k), or come packed if they are constant.
namespace weft::native {

using namespace weft::backend;

namespace {

constexpr int64_t kStrip = 96, kDepth = 384;

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
  const bool in_place = reads_in_place(g);
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
        if (in_place) {
          gemm.strip(packed, rows, part, x + k * image + p, image, count, y, places, k > 0);
          continue;
        }
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

int64_t groups_of(const OpCall& c) { return c.attr("groups").integer(1); }

Outcome prepare(const OpCall& c, weft_plan& plan) {
  const TypeView w = c.input(1);
  if (!w.constant()) return Outcome::ok();
  const Geometry g = filters(w.max(), groups_of(c));
  if (worth_splitting(c, g)) return want_split(plan, g), Outcome::ok();
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
  if (to.layout() == kSplitLayout)
    return pack_split(host, g, from.data<float>(), reinterpret_cast<uint8_t*>(to.data<float>())),
           Outcome::ok();
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
  if (l.input(1).layout() == kSplitLayout) return convolve_split(l, g), Outcome::ok();
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
