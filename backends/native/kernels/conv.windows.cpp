#include <algorithm>

#include "backends/native/convolution_call.h"
#include "backends/native/scratch.h"
#include "backends/native/windows.h"

// conv as a product of matrices, y[p, o] = sum over (c, k) of x[place(p) + offset(c, k)] w[o, (c, k)]: the
// windows are read from the image where they lie, one number for a whole vector of filters. An image that is
// padded is copied once, with its border. The filters are packed; some places at a time are made for all of
// k, then turned.
namespace weft::native {

using namespace weft::backend;

namespace {

constexpr int64_t kLeastFilters = 16;  // fewer leave most of a vector empty
constexpr int64_t kPlaces = 256;       // of one strip: with a panel's filters 48 KB

// What a window reads of one axis, from the border on.
int64_t reach(const Axis& a) { return (a.count - 1) * a.stride + (a.kernel - 1) * a.dilation + 1; }
bool padded(const Axis& a) { return a.before > 0 || reach(a) > a.size; }

Product<float> filters_of(const Geometry& g, const float* weights) {
  return {.n = g.group_filters(), .k = g.depth(), .b = weights, .b_row = 1, .b_column = g.depth()};
}

/// One group of a call: the filters are the columns of a product.
class Group {
 public:
  Group(const Host& host, const Convolution& c, int64_t group)
      : g_(c.g),
        filters_(filters_of(g_, nullptr)),
        blocks_(blocks_of(filters_)),
        copied_(padded(g_.rows) || padded(g_.columns)),
        height_(copied_ ? reach(g_.rows) : g_.rows.size),
        width_(copied_ ? reach(g_.columns) : g_.columns.size),
        x_(c.x_of(group)),
        y_(c.y_of(group)),
        tail_(c.tail_of(group)) {
    packed_ = c.filters.data<float>();
    if (c.filters.layout() == 0) {
      float* packed = scratch<float>(Scratch::packed_b, packed_size(filters_));
      pack_whole_b(host, filters_of(g_, packed_ + group * g_.group_filters() * g_.depth()), packed);
      packed_ = packed;
    } else {
      packed_ += group * packed_size(filters_);
    }
    list_offsets();
  }

  void run(const Host& host) const {
    float* copy = copied_ ? scratch<float>(Scratch::rows, g_.group_channels() * height_ * width_) : nullptr;
    for (int64_t n = 0; n < g_.images; ++n) {
      const float* x = x_ + n * g_.channels * g_.rows.size * g_.columns.size;
      if (copied_) copy_padded(host, x, copy), x = copy;
      convolve(host, x, n * g_.filters * g_.places());
    }
  }

 private:
  // Where the windows' elements lie, from their first one on; and the places of all windows.
  void list_offsets() {
    int64_t* to = scratch<int64_t>(Scratch::pieces, g_.depth() + g_.places());
    offsets_ = to;
    for (int64_t c = 0; c < g_.group_channels(); ++c)
      for (int64_t y = 0; y < g_.rows.kernel; ++y)
        for (int64_t x = 0; x < g_.columns.kernel; ++x)
          *to++ = (c * height_ + y * g_.rows.dilation) * width_ + x * g_.columns.dilation;
    places_ = to;
    for (int64_t y = 0; y < g_.rows.count; ++y)
      for (int64_t x = 0; x < g_.columns.count; ++x)
        *to++ = y * g_.rows.stride * width_ + x * g_.columns.stride;
  }

  // An image with its border, as far as windows reach.
  void copy_padded(const Host& host, const float* x, float* to) const {
    constexpr int64_t kGrain = 1 << 14;
    const Axis &rows = g_.rows, &columns = g_.columns;
    const int64_t left = std::min(columns.before, width_),
                  inside = std::clamp<int64_t>(width_ - left, 0, columns.size);
    host.parallel_for(g_.group_channels() * height_, std::max<int64_t>(1, kGrain / width_),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t r = begin; r < end; ++r) {
                          const int64_t c = r / height_, y = r % height_ - rows.before;
                          float* row = to + r * width_;
                          if (y < 0 || y >= rows.size) {
                            std::fill_n(row, width_, 0.0f);
                            continue;
                          }
                          std::fill_n(row, left, 0.0f);
                          std::copy_n(x + (c * rows.size + y) * columns.size, inside, row + left);
                          std::fill_n(row + left + inside, width_ - left - inside, 0.0f);
                        }
                      });
  }

  // An image, whose results begin at `y`.
  void convolve(const Host& host, const float* x, int64_t y) const {
    const int64_t panels = (filters_.n + blocks_.panel - 1) / blocks_.panel, all = g_.places();
    const int64_t strips = (all + kPlaces - 1) / kPlaces,
                  count = ((all + strips - 1) / strips + 15) / 16 * 16;
    host.parallel_for(strips * panels, 1, [&](int64_t begin, int64_t end) {
      float* c = scratch<float>(Scratch::columns, kPlaces * blocks_.panel);
      for (int64_t t = begin; t < end; ++t) {
        const int64_t p = t / panels * count, j = t % panels * blocks_.panel;
        const WindowRows rows{x, places_ + p, std::min(count, all - p), offsets_};
        if (rows.rows > 0) strip(rows, j, c, y + j * all + p);
      }
      if (tail_.past) end_stream();
    });
  }
  // One panel of filters at some places; results begin at `y`.
  void strip(const WindowRows& rows, int64_t j, float* c, int64_t y) const {
    const int64_t columns = std::min(blocks_.panel, filters_.n - j);
    for (int64_t k = 0; k < filters_.k; k += blocks_.depth) {
      const int64_t next = k + blocks_.depth;
      const bool last = next >= filters_.k;
      multiply_windows(rows, k, std::min(blocks_.depth, filters_.k - k), panel(j, k),
                       last ? panel(j + blocks_.panel, 0) : panel(j, next), columns, c, k > 0,
                       last ? Turned{y_ + y, g_.places(), tail_.at(j, y)} : Turned{});
    }
  }
  // The packed filters from j on, elements from k on; beyond the last ones, the first.
  const float* panel(int64_t j, int64_t k) const {
    if (j >= filters_.n) j = 0;
    const int64_t block = j / blocks_.columns * blocks_.columns,
                  depth = std::min(blocks_.depth, filters_.k - k);
    return packed_ + packed_at(filters_, blocks_, block, k) + (j - block) * depth;
  }

  const Geometry& g_;
  const Product<float> filters_;
  const Blocks blocks_;
  const bool copied_;
  const int64_t height_, width_;  // of the image that windows are read from
  const float* const x_;
  float* const y_;
  const Tail tail_;
  const float* packed_;
  const int64_t *offsets_, *places_;
};

// Long rows of places are read in place, too, by whole vectors, and nothing has to be turned.
bool reads_rows(const OpCall& c, const shared::ConvBody& body) {
  constexpr int64_t kLong = 512;
  int64_t places = 1;
  for (size_t axis = 2; axis < body.y.size(); ++axis) {
    if (c.input(body.filters).max()[axis] != 1 || c.input(body.x).max()[axis] != body.y[axis]) return false;
    places *= body.y[axis];
  }
  return places >= kLong;
}

void run(const Host& host, const Convolution& c) {
  for (int64_t group = 0; group < c.g.groups; ++group) Group(host, c, group).run(host);
}

}  // namespace

Support accepts_windows(const OpCall& c) {
  std::string why;
  const auto body = convolution_body(c, why);
  if (!body) return {false, why};
  const Geometry g = filters(c, *body);
  if (g.group_filters() < kLeastFilters)
    return Support::no("at least {} filters a group, got {}", kLeastFilters, g.group_filters());
  if (reads_rows(c, *body)) return Support::no("1 x 1 filters read rows of a large image in place");
  return Support::yes();
}

Outcome prepare_windows(const OpCall& c, weft_plan& plan) {
  std::string why;
  auto body = convolution_body(c, why).value();
  const Geometry g = filters(c, body);
  const Product<float> p = filters_of(g, nullptr);
  std::optional<Packing> packing;
  if (c.input(body.filters).constant() && g.depth() > 0)
    packing = {format("{} groups of {}", g.groups, packed_id(p)),
               static_cast<uint64_t>(g.groups * packed_size(p)) * sizeof(float)};
  return keep(plan, std::move(body), std::move(packing)), Outcome::ok();
}

Outcome pack_windows(const weft_plan& plan, int64_t, TensorView from, TensorView to, const Host& host) {
  const Geometry g = filters_to_pack(plan, from);
  for (int64_t group = 0; group < g.groups; ++group) {
    const auto p = filters_of(g, from.data<float>() + group * g.group_filters() * g.depth());
    pack_whole_b(host, p, to.data<float>() + group * packed_size(p));
  }
  return Outcome::ok();
}

Outcome launch_windows(const Launch& l) { return launch_convolution(l, run); }

extern const KernelRecord conv_windows = {.op = "conv",
                                          .variant = "windows",
                                          .reads = {"stride", "padding", "dilation", "groups"},
                                          .accepts = accepts_windows,
                                          .prepare = prepare_windows,
                                          .release = release_convolution,
                                          .launch = launch_windows,
                                          .rank = 1,  // before the kernel for any number of filters
                                          .pack = pack_windows};

}  // namespace weft::native
