#include "backends/native/split_convolution.h"

#include "backends/native/scratch.h"

namespace weft::native {
namespace {

constexpr int64_t kPlaces = 4 * kSplitPanel, kDepth = 16 * kSplitStep;  // of a piece of columns: in L2, split
constexpr int64_t kLeastTasks = 4;

int64_t panels_of(int64_t lines) { return (lines + kSplitPanel - 1) / kSplitPanel; }

// What is packed of each group: its panels, then a byte for each, 1 where it holds f32: 32 rows of k.
int64_t group_bytes(const Geometry& g) {
  return panels_of(g.group_filters()) * (split_panel_bytes(g.depth()) + 64);
}

/// One group of a call.
class Group {
 public:
  Group(const Convolution& c, int64_t group)
      : g_(c.g),
        x_(c.x_of(group)),
        filters_(reinterpret_cast<const uint8_t*>(c.filters.data()) + group * group_bytes(g_)),
        plain_(filters_ + panels_of(g_.group_filters()) * panel()),
        y_(c.y_of(group)),
        tail_(c.tail_of(group)) {}

  void run(const backend::Host& host) const {
    const int64_t strips = (g_.places() + kPlaces - 1) / kPlaces, panels = panels_of(g_.group_filters());
    // Few strips: some filters at a time, each with columns of its own.
    const int64_t parts = g_.images * strips < kLeastTasks ? std::min<int64_t>(2, panels) : 1;
    host.parallel_for(g_.images * strips * parts, 1, [&](int64_t begin, int64_t end) {
      const SplitScope scope;
      for (int64_t t = begin; t < end; ++t) {
        const int64_t part = t % parts, strip = t / parts % strips, n = t / parts / strips;
        make(n, strip * kPlaces, panels * part / parts, panels * (part + 1) / parts);
      }
    });
  }

 private:
  int64_t image() const { return g_.rows.size * g_.columns.size; }
  int64_t panel() const { return split_panel_bytes(g_.depth()); }

  // Filters of panels [i, i1) at places from p of image n.
  void make(int64_t n, int64_t p, int64_t i, int64_t i1) const {
    const int64_t count = std::min(kPlaces, g_.places() - p), piece = split_panel_bytes(kDepth);
    uint8_t* split = scratch<uint8_t>(Scratch::split, kPlaces / kSplitPanel * piece);
    const bool all_split = std::none_of(plain_ + i, plain_ + i1, [](uint8_t f) { return f; });
    for (int64_t k = 0; k < g_.depth(); k += kDepth) {
      const int64_t depth = std::min(kDepth, g_.depth() - k);
      const Lines columns = columns_at(n, k, depth, p, count);
      bool good = all_split;
      for (int64_t j = 0; j < count && good; j += kSplitPanel)
        good = split_columns({columns.from + j, 1, columns.along}, std::min(kSplitPanel, count - j), depth,
                             split + j / kSplitPanel * piece);
      const int64_t at = (n * g_.filters + i * kSplitPanel) * g_.places() + p;
      const SplitResult to{.c = y_ + at,
                           .c_row = g_.places(),
                           .rows = std::min(i1 * kSplitPanel, g_.group_filters()) - i * kSplitPanel,
                           .columns = count,
                           .accumulate = k > 0,
                           .start = nullptr};
      if (good)
        multiply_split({filters_ + i * panel() + k / kSplitStep * kSplitStepBytes, panel()}, {split, piece},
                       depth, to);
      else
        by_vectors(i, k, depth, columns, to);
      if (k + depth == g_.depth()) finish(tail_.at(i * kSplitPanel, at), to.rows, count, to.c, to.c_row);
    }
  }
  // Rows [k, k + depth) of the columns at places [p, p + count).
  Lines columns_at(int64_t n, int64_t k, int64_t depth, int64_t p, int64_t count) const {
    const float* x = x_ + n * g_.channels * image();
    if (reads_in_place(g_)) return {x + k * image() + p, 1, image()};
    float* to = scratch<float>(Scratch::columns, kDepth * kPlaces);
    const int64_t window = g_.rows.kernel * g_.columns.kernel;
    for (int64_t q = 0; q < depth; ++q) {
      const int64_t channel = (k + q) / window, at = (k + q) % window;
      gather_row(g_, x + channel * image(), at / g_.columns.kernel, at % g_.columns.kernel, p, count,
                 to + q * kPlaces);
    }
    return {to, 1, kPlaces};
  }
  void by_vectors(int64_t i, int64_t k, int64_t depth, const Lines& columns, const SplitResult& to) const {
    float* joined = scratch<float>(Scratch::rows, kSplitPanel * g_.depth());
    for (int64_t r = 0; r < to.rows; r += kSplitPanel, ++i) {
      const uint8_t* packed = filters_ + i * panel();
      const float* rows = reinterpret_cast<const float*>(packed);
      if (!plain_[i]) join_rows(packed, g_.depth(), joined), rows = joined;
      multiply(Product<float>{.m = std::min(kSplitPanel, to.rows - r),
                              .n = to.columns,
                              .k = depth,
                              .a = rows + k,
                              .a_row = g_.depth(),
                              .b = columns.from,
                              .b_row = columns.along,
                              .c = to.c + r * to.c_row,
                              .c_row = to.c_row,
                              .accumulate = to.accumulate});
    }
  }

  const Geometry& g_;
  const float* const x_;
  const uint8_t *const filters_, *const plain_;  // panels, and whether each is out of range
  float* const y_;
  const Tail tail_;
};

}  // namespace

bool worth_splitting(const backend::OpCall& c, const shared::ConvBody& body, const Geometry& g) {
  return in_one_size(c, body.filters) && splits_products() && g.group_filters() >= 32 && g.depth() >= 32 &&
         shared::product(std::span(body.y).subspan(2)) >= 32;
}

Packing split_packing(const Geometry& g) {
  return {
      backend::format("native.split_filters.1 {} groups of [{}, {}]", g.groups, g.group_filters(), g.depth()),
      static_cast<uint64_t>(g.groups * group_bytes(g)), kSplitLayout};
}

void pack_split(const backend::Host& host, const Geometry& g, const float* filters, uint8_t* to) {
  const int64_t rows = g.group_filters(), depth = g.depth(), panel = split_panel_bytes(depth),
                panels = panels_of(rows);
  host.parallel_for(g.groups * panels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t group = t / panels, i = t % panels, count = std::min(kSplitPanel, rows - i * kSplitPanel);
      const float* from = filters + (group * rows + i * kSplitPanel) * depth;
      uint8_t *start = to + group * group_bytes(g), *at = start + i * panel;
      const bool split = split_rows({from, depth, 1}, count, depth, at);
      if (!split) std::copy_n(from, count * depth, reinterpret_cast<float*>(at));
      start[panels * panel + i] = !split;
    }
  });
}

void convolve_split(const backend::Host& host, const Convolution& c) {
  for (int64_t group = 0; group < c.g.groups; ++group) Group(c, group).run(host);
}

}  // namespace weft::native
