#include "import/places.h"

// Images sampled at places that a tensor names, from -1 to 1.
namespace weft::importer {
namespace {

struct Sampling {
  ir::Value pixels;  // [batch, height x width, channels]
  Dim height, width;
  bool zeros;  // outside of the image; else its border goes on
};

// Along one axis, in pixels.
ir::Value pixel(Call& c, ir::Value at, Dim size, bool align_corners, bool border) {
  const auto n = c.b.cast(number(c.b, size), at.dtype());
  const auto scaled = align_corners ? c.b.mul(c.b.mul(c.b.add(at, 1), 0.5), c.b.sub(n, 1))
                                    : c.b.mul(c.b.sub(c.b.mul(c.b.add(at, 1), n), 1), 0.5);
  return border ? c.b.minimum(c.b.maximum(scaled, 0), c.b.sub(n, 1)) : scaled;
}
// The pixels at whole rows and columns, and zero or the nearest one where there is none.
ir::Value pixels_at(Call& c, const Sampling& s, ir::Value row, ir::Value column) {
  const auto inside = [&](ir::Value at, Dim size) {
    const auto last = c.b.cast(number(c.b, size - Dim(1)), at.dtype());
    return std::pair{
        c.b.minimum(c.b.maximum(at, 0), last),
        c.b.bit_and(c.b.one("greater_equal", {at, c.b.zeros_like(at)}), c.b.one("less_equal", {at, last}))};
  };
  const auto [r, r_good] = inside(row, s.height);
  const auto [q, q_good] = inside(column, s.width);
  const auto index = c.b.add(c.b.mul(c.b.cast(r, DType::i64), number(c.b, s.width)), c.b.cast(q, DType::i64));
  const auto found = c.b.gather(s.pixels, index, 1, 1);
  if (!s.zeros) return found;
  Shape apart = index.shape();
  apart.push_back(1);
  return c.b.where(c.b.reshape(c.b.bit_and(r_good, q_good), apart), found, 0);
}
ir::Value bilinear(Call& c, const Sampling& s, ir::Value row, ir::Value column) {
  const auto top = c.b.floor(row), left = c.b.floor(column);
  const auto down = c.b.sub(row, top), right = c.b.sub(column, left);
  ir::Value sum;
  for (const int i : {0, 1})
    for (const int j : {0, 1}) {
      const auto weight = c.b.mul(i ? down : c.b.sub(1, down), j ? right : c.b.sub(1, right));
      Shape apart = weight.shape();
      apart.push_back(1);
      const auto part =
          c.b.mul(pixels_at(c, s, c.b.add(top, i), c.b.add(left, j)), c.b.reshape(weight, apart));
      sum = sum ? c.b.add(sum, part) : part;
    }
  return sum;
}

void grid_sampler(Call& c) {
  const auto x = c.tensor("input"), grid = c.tensor("grid");
  const int64_t how = c.integer("interpolation_mode"), padding = c.integer("padding_mode");
  const bool align = c.flag("align_corners");
  if (how < 0 || how > 1 || padding < 0 || padding > 1)
    return c.refuse(fail(
        Code::unsupported,
        "interpolation {} with padding {}: bilinear (0) and nearest (1), with zeros (0) or the border (1), "
        "are imported",
        how, padding));
  if (x.rank() != 4 || grid.rank() != 4 || !(grid.shape()[3] == Dim(2)))
    return c.refuse(invalid("images of {} at {}", weft::text(x.type()), weft::text(grid.type())));
  const Shape s = x.shape(), g = grid.shape();
  const auto turned = c.b.one("permute", {x}, {{"axes", Shape{0, 2, 3, 1}}});
  const Sampling sampling{c.b.reshape(turned, {s[0], s[2] * s[3], s[1]}), s[2], s[3], padding == 0};
  const auto along = [&](int64_t i, Dim size) {
    const auto part =
        c.b.one("slice", {grid}, {{"axis", int64_t{3}}, {"start", Shape{i}}, {"stop", Shape{i + 1}}});
    return pixel(c, c.b.reshape(part, {g[0], g[1] * g[2]}), size, align, padding == 1);
  };
  const auto column = along(0, s[3]), row = along(1, s[2]);
  const auto y = how == 0 ? bilinear(c, sampling, row, column)
                          : pixels_at(c, sampling, c.b.round(row), c.b.round(column));
  c.give(c.b.one("permute", {c.b.reshape(y, {g[0], g[1], g[2], s[1]})}, {{"axes", Shape{0, 3, 1, 2}}}));
}

constexpr AtenOp grid_ops[] = {
    {"grid_sampler.default", "input, grid, interpolation_mode=, padding_mode=, align_corners=",
     "floor, gather, mul, add", grid_sampler},
    {"grid_sampler_2d.default", "input, grid, interpolation_mode=, padding_mode=, align_corners=",
     "floor, gather, mul, add", grid_sampler},
};

}  // namespace

extern constinit const Family grid_family = {grid_ops};

}  // namespace weft::importer
