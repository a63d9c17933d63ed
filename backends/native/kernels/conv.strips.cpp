#include <algorithm>

#include "backends/native/convolution_call.h"
#include "backends/native/scratch.h"

// conv as a product of matrices: y[o, p] = sum over (c, k) of w[o, (c, k)] columns[(c, k), p]. The columns of
// a strip of p are gathered from x when they are used, and stay in L2; the weights are packed once for each
// block of (c, k), or come packed if they are constant.
namespace weft::native {

using namespace weft::backend;

namespace {

constexpr int64_t kStrip = 96, kDepth = 384;  // gathered: 147 KB

// Places of a strip that is read in place: rows of the result are written in runs of so many. The strip stays
// in L2; there are some for each of several threads.
int64_t in_place_strip(const Geometry& g) {
  constexpr int64_t kElements = 1 << 16, kLongest = 960, kTasks = 16;
  int64_t strip = std::min(kElements / std::min(g.depth(), kDepth), kLongest) / kStrip * kStrip;
  while (strip > kStrip && g.images * ((g.places() + strip - 1) / strip) < kTasks)
    strip = strip / 2 / kStrip * kStrip;
  return std::max(strip, kStrip);
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

void run_group(const Host& host, const Convolution& c, int64_t group) {
  const GemmTable<float>& gemm = gemm_table<float>();
  const Geometry& g = c.g;
  const int64_t rows = g.group_filters(), depth = g.depth(), places = g.places();
  const bool in_place = reads_in_place(g);
  const int64_t strip = in_place ? in_place_strip(g) : kStrip, strips = (places + strip - 1) / strip;
  const int64_t padded = packed_rows(g), image = g.rows.size * g.columns.size;
  const float* given = c.filters.data<float>();
  const bool ready = c.filters.layout() != 0;
  float* own = ready ? nullptr : scratch<float>(Scratch::packed_b, padded * std::min(depth, kDepth));
  for (int64_t k = 0; k < depth; k += kDepth) {
    const int64_t part = std::min(kDepth, depth - k);
    if (!ready) gemm.pack_a(filters_of(g, group, given), k, part, 0, rows, own);
    const float* packed = ready ? given + padded * (group * depth + k) : own;
    const Tail tail = k + part == depth ? c.tail_of(group) : Tail{};
    host.parallel_for(g.images * strips, 1, [&](int64_t begin, int64_t end) {
      float* columns = scratch<float>(Scratch::columns, kDepth * kStrip);
      for (int64_t t = begin; t < end; ++t) {
        const int64_t n = t / strips, p = t % strips * strip, count = std::min(strip, places - p);
        const float *x = c.x_of(group) + n * g.channels * image, *b = x + k * image + p;
        if (!in_place) gather_strip(g, x, k, part, p, count, columns), b = columns;
        const int64_t at = n * g.filters * places + p;
        gemm.strip(packed, rows, part, b, in_place ? image : kStrip, count, c.y_of(group) + at, places, k > 0,
                   tail.at(0, at));
      }
      if (tail.past) end_stream();
    });
  }
}

void run(const Host& host, const Convolution& c) {
  for (int64_t group = 0; group < c.g.groups; ++group) run_group(host, c, group);
}

std::optional<Packing> wanted(const OpCall& c, const shared::ConvBody& body) {
  if (!c.input(body.filters).constant()) return {};
  const Geometry g = filters(c, body);
  const int64_t size = g.groups * packed_rows(g) * g.depth();
  if (size < kLeastPacked) return {};
  return Packing{format("native.filters.1 f32 {} groups of [{}, {}] by {} in blocks of {}", g.groups,
                        g.group_filters(), g.depth(), gemm_table<float>().panel_rows, kDepth),
                 static_cast<uint64_t>(size) * sizeof(float)};
}

}  // namespace

Support accepts_strips(const OpCall& c) {
  std::string why;
  return convolution_body(c, why) ? Support::yes() : Support{false, why};
}

Outcome prepare_strips(const OpCall& c, weft_plan& plan) {
  std::string why;
  auto body = convolution_body(c, why).value();
  auto packing = wanted(c, body);
  return keep(plan, std::move(body), std::move(packing)), Outcome::ok();
}

Outcome pack_strips(const weft_plan& plan, int64_t, TensorView from, TensorView to, const Host& host) {
  const Geometry g = filters_to_pack(plan, from);
  host.parallel_for(g.groups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group)
      for (int64_t k = 0; k < g.depth(); k += kDepth)
        gemm_table<float>().pack_a(filters_of(g, group, from.data<float>()), k,
                                   std::min(kDepth, g.depth() - k), 0, g.group_filters(),
                                   to.data<float>() + packed_rows(g) * (group * g.depth() + k));
  });
  return Outcome::ok();
}

Outcome launch_strips(const Launch& l) { return launch_convolution(l, run); }

extern const KernelRecord conv_strips = {.op = "conv",
                                         .variant = "strips",
                                         .reads = {"stride", "padding", "dilation", "groups"},
                                         .accepts = accepts_strips,
                                         .prepare = prepare_strips,
                                         .release = release_convolution,
                                         .launch = launch_strips,
                                         .pack = pack_strips};

}  // namespace weft::native
