#include <algorithm>
#include <cmath>

#include "import/places.h"
#include "ops/shared/pool.h"

// Windows over the last axes, and other resolutions of them.
namespace weft::importer {
namespace {

// "max_pool2d.default" -> 2
size_t axes_in_name(const Call& c) {
  const std::string_view name = c.op.name;
  const size_t at = name.find('d', name.find_first_of("123"));
  return static_cast<size_t>(name[at - 1] - '0');
}
struct Window {
  Shape kernel, stride, padding;
  bool ceil_mode = false;
};
// A window that reaches past the end on every place it has is cut there: models write global pooling as one
// far larger than any image. Then the last windows need not be counted up.
void fit(Window& w, const Shape& x) {
  if (!w.ceil_mode) return;
  bool ends_within = true;
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    const Dim size = x[x.size() - w.kernel.size() + i];
    if (!size.is_const()) return;
    const int64_t room = size.value() + 2 * w.padding[2 * i].value();
    if (w.kernel[i].value() > room && room > 0) w.kernel[i] = room;
    const int64_t rest = room - w.kernel[i].value(), step = w.stride[i].value();
    ends_within &= rest >= 0 && step > 0 && rest % step == 0;
  }
  if (ends_within) w.ceil_mode = false;
}
Window window_of(Call& c, size_t n) {
  Window w{.kernel = shape_of(c.integers("kernel_size", n)), .stride = {}, .padding = {}};
  w.stride = w.kernel;
  if (c.has("stride") && !c.integers("stride").empty()) w.stride = shape_of(c.integers("stride", n));
  for (const int64_t p : c.integers("padding", n)) w.padding.push_back(p), w.padding.push_back(p);
  w.ceil_mode = c.flag("ceil_mode");
  return w;
}
void max_pool(Call& c) {
  const size_t n = axes_in_name(c);
  Window w = window_of(c, n);
  const auto x = c.tensor("self");
  const IntList dilation = c.integers("dilation", n);
  const bool dense = std::ranges::all_of(dilation, [](int64_t d) { return d == 1; });
  if (dense && x.shape().size() >= n) fit(w, x.shape());
  c.give(c.b.one("max_pool", {x},
                 {{"kernel", w.kernel},
                  {"stride", w.stride},
                  {"padding", w.padding},
                  {"dilation", shape_of(dilation)},
                  {"ceil_mode", int64_t{w.ceil_mode}}}));
}
// The number, within its image, of the element that each window picks: the first of equal ones.
ir::Value picked(Call& c, ir::Value x, const Window& w, const Shape& dilation) {
  auto windows = ir::pool_windows("max_pool", x.type(), w.kernel, w.stride, w.padding, dilation, w.ceil_mode);
  if (!windows.ok()) return c.refuse(windows.status()), x;
  const auto all = std::span<const Dim>(x.shape());
  const Shape image(all.end() - static_cast<int64_t>(w.kernel.size()), all.end());
  const auto numbers = c.b.reshape(count(c.b, element_count(std::span<const Dim>(image))), image);
  const auto elements = [&](ir::Value v, double padding) {
    return ir::window_elements(c.b, v, *windows, padding);
  };
  const auto best = c.b.one("argmax", {elements(x, -INFINITY)}, {{"axis", int64_t{-1}}});
  const auto all_numbers = elements(c.b.broadcast(numbers, x.shape()), 0);
  return c.b.gather(all_numbers, c.b.cast(best, DType::i64), best.rank(), best.rank());
}
// Decomposed graphs have the positions beside the maxima, and may leave them.
void max_pool_with_indices(Call& c) {
  max_pool(c);
  if (!c.status().ok()) return;
  const size_t n = axes_in_name(c);
  const auto x = c.tensor("self");
  c.give({c.results[0],
          c.reads(1) ? picked(c, x, window_of(c, n), shape_of(c.integers("dilation", n))) : ir::Value()});
}
void avg_pool(Call& c) {
  Window w = window_of(c, axes_in_name(c));
  const auto x = c.tensor("self");
  if (x.shape().size() >= w.kernel.size()) fit(w, x.shape());
  const bool other = c.node.attrs.contains("divisor_override") && c.has("divisor_override");
  if (other && w.ceil_mode)
    return c.refuse(fail(Code::unsupported, "a divisor of {} in windows that are counted up",
                         c.integer("divisor_override")));
  const auto y = c.b.one("avg_pool", {x},
                         {{"kernel", w.kernel},
                          {"stride", w.stride},
                          {"padding", w.padding},
                          {"count_include_pad", int64_t{other || c.flag("count_include_pad")}},
                          {"ceil_mode", int64_t{w.ceil_mode}}});
  if (!other) return c.give(y);
  const auto elements = static_cast<double>(element_count(std::span<const Dim>(w.kernel)).value());
  c.give(c.b.mul(y, elements / static_cast<double>(c.integer("divisor_override"))));
}
// None keeps the size of an axis: the file has the result's.
void adaptive_avg_pool(Call& c) {
  const size_t n = axes_in_name(c);
  const Shape& shape = c.declared().shape;
  if (shape.size() < n) return c.refuse(invalid("its result has {} axes", shape.size()));
  c.give(c.b.one("adaptive_avg_pool", {c.tensor("self")},
                 {{"size", Shape(shape.end() - static_cast<int>(n), shape.end())}}));
}

// ---- resolutions
// What one element of the result is wide in the operand, along spatial axis i of n: by the factor that was
// given, or by the sizes.
double step_of(Call& c, size_t i, int64_t from, int64_t to) {
  const auto factors = c.node.attrs.find("scale_factors");
  const auto* list =
      factors == c.node.attrs.end() ? nullptr : std::get_if<std::vector<Arg>>(&factors->second.value);
  if (list && i < list->size())
    if (const auto* factor = std::get_if<double>(&(*list)[i].value); factor && *factor > 0)
      return 1 / *factor;
  return static_cast<double>(from) / static_cast<double>(std::max<int64_t>(1, to));
}
ir::Value list_of(Call& c, int64_t n, DType t) {
  return c.b.one("iota", {}, {{"size", Shape{n}}, {"dtype", std::string(name(t))}});
}
bool fixed(Call& c, Dim from, Dim to) {
  if (from.is_const() && to.is_const() && from.value() > 0) return true;
  c.refuse(fail(Code::unsupported, "other resolutions of an axis whose size is a symbol, or 0"));
  return false;
}
ir::Value nearest_along(Call& c, ir::Value x, int64_t axis, int64_t from, int64_t to, double step) {
  const auto scaled = c.b.one("floor", {c.b.mul(list_of(c, to, DType::f32), step)});
  const auto index = c.b.cast(c.b.minimum(scaled, static_cast<double>(from - 1)), DType::i64);
  return c.b.gather(x, index, axis, 0);
}
// Between two neighbours; the positions are those of the centres, or with `corners` of the outermost
// elements.
ir::Value linear_along(Call& c, ir::Value x, int64_t axis, int64_t from, int64_t to, double step,
                       bool corners) {
  auto at = list_of(c, to, DType::f32);
  if (corners) {
    at = c.b.mul(at, to > 1 ? static_cast<double>(from - 1) / static_cast<double>(to - 1) : 0);
  } else {
    at = c.b.maximum(c.b.sub(c.b.mul(c.b.add(at, 0.5), step), 0.5), 0);
  }
  const auto last = static_cast<double>(from - 1);
  const auto low = c.b.minimum(c.b.one("floor", {at}), last), high = c.b.minimum(c.b.add(low, 1), last);
  Shape along{Dim(to)};
  for (int64_t i = axis + 1; i < x.rank(); ++i) along.push_back(1);
  const auto share = c.b.cast(c.b.reshape(c.b.sub(at, low), along), x.dtype());
  const auto pick = [&](ir::Value index) { return c.b.gather(x, c.b.cast(index, DType::i64), axis, 0); };
  return c.b.add(c.b.mul(pick(low), c.b.sub(1, share)), c.b.mul(pick(high), share));
}
void resize(Call& c, bool linear) {
  const auto given = c.tensor(c.has("input") ? "input" : "self");
  auto x = linear && is_half(given.dtype()) ? c.b.cast(given, DType::f32) : given;
  const size_t n = axes_in_name(c);
  const Shape& shape = c.declared().shape;
  if (shape.size() != x.shape().size() || shape.size() < n + 2)
    return c.refuse(invalid("its result has other axes"));
  for (size_t i = 0; i < n; ++i) {
    const size_t axis = shape.size() - n + i;
    if (!fixed(c, x.shape()[axis], shape[axis])) return;
    const int64_t from = x.shape()[axis].value(), to = shape[axis].value();
    const double step = step_of(c, i, from, to);
    if (!linear)
      x = nearest_along(c, x, static_cast<int64_t>(axis), from, to, step);
    else
      x = linear_along(c, x, static_cast<int64_t>(axis), from, to, step, c.flag("align_corners"));
  }
  c.give(c.b.cast(x, given.dtype()));
}
void nearest(Call& c) { resize(c, false); }
void resize_linear(Call& c) { resize(c, true); }

constexpr AtenOp window_ops[] = {
    {"_adaptive_avg_pool2d.default", "self", "adaptive_avg_pool", adaptive_avg_pool},
    {"_adaptive_avg_pool3d.default", "self", "adaptive_avg_pool", adaptive_avg_pool},
    {"adaptive_avg_pool1d.default", "self", "adaptive_avg_pool", adaptive_avg_pool},
    {"adaptive_avg_pool2d.default", "self", "adaptive_avg_pool", adaptive_avg_pool},
    {"adaptive_avg_pool3d.default", "self", "adaptive_avg_pool", adaptive_avg_pool},
    {"avg_pool1d.default",
     "self, kernel_size=, stride=[], padding=0, ceil_mode=false, count_include_pad=true", "avg_pool",
     avg_pool},
    {"avg_pool2d.default",
     "self, kernel_size=, stride=[], padding=0, ceil_mode=false, count_include_pad=true, "
     "divisor_override=None",
     "avg_pool", avg_pool},
    {"avg_pool3d.default",
     "self, kernel_size=, stride=[], padding=0, ceil_mode=false, count_include_pad=true, "
     "divisor_override=None",
     "avg_pool", avg_pool},
    {"max_pool1d.default", "self, kernel_size=, stride=[], padding=0, dilation=1, ceil_mode=false",
     "max_pool", max_pool},
    {"max_pool2d.default", "self, kernel_size=, stride=[], padding=0, dilation=1, ceil_mode=false",
     "max_pool", max_pool},
    {"max_pool2d_with_indices.default",
     "self, kernel_size=, stride=[], padding=0, dilation=1, ceil_mode=false", "max_pool",
     max_pool_with_indices},
    {"max_pool3d_with_indices.default",
     "self, kernel_size=, stride=[], padding=0, dilation=1, ceil_mode=false", "max_pool",
     max_pool_with_indices},
    {"max_pool3d.default", "self, kernel_size=, stride=[], padding=0, dilation=1, ceil_mode=false",
     "max_pool", max_pool},
    {"upsample_bilinear2d.vec", "input, output_size=None, align_corners=, scale_factors=None",
     "gather, mul, add", resize_linear},
    {"upsample_linear1d.vec", "input, output_size=None, align_corners=, scale_factors=None",
     "gather, mul, add", resize_linear},
    {"upsample_nearest1d.vec", "input, output_size=None, scale_factors=None", "gather", nearest},
    {"upsample_nearest2d.vec", "input, output_size=None, scale_factors=None", "gather", nearest},
    {"upsample_nearest3d.vec", "input, output_size=None, scale_factors=None", "gather", nearest},
};

}  // namespace

extern constinit const Family window_family = {window_ops};

}  // namespace weft::importer
