#include <algorithm>

#include "import/call.h"

// Ops that put tensors together, or repeat and surround one.
namespace weft::importer {
namespace {

ir::ValueList promoted(Call& c, const ir::ValueList& all) {
  std::vector<Operand> operands;
  for (const auto v : all) operands.push_back({v, {}});
  return c.promoted(operands);
}

// A tensor of shape [0] counts as nothing beside others of any shape: an empty cache.
void cat(Call& c) {
  auto all = promoted(c, c.tensors("tensors"));
  const auto is_nothing = [](ir::Value v) { return v.shape() == Shape{0}; };
  if (!std::all_of(all.begin(), all.end(), is_nothing)) std::erase_if(all, is_nothing);
  if (all.empty()) return c.refuse(invalid("there is no tensor"));
  c.give(c.concat(all, c.axis("dim", all[0].rank())));
}
void stack(Call& c) {
  auto all = promoted(c, c.tensors("tensors"));
  if (all.empty()) return c.refuse(invalid("there is no tensor"));
  const int64_t axis = c.axis("dim", all[0].rank() + 1);
  for (auto& v : all) {
    Shape shape = v.shape();
    if (static_cast<size_t>(axis) > shape.size()) return c.refuse(invalid("its tensors have several shapes"));
    shape.insert(static_cast<size_t>(axis), Dim(1));
    v = c.b.reshape(v, shape);
  }
  c.give(c.concat(all, axis));
}

// Each axis of x beside an axis of repetitions, then both as one.
void repeat(Call& c) {
  const auto x = c.tensor("self");
  IntList times = c.integers(c.node.attrs.contains("dims") ? "dims" : "repeats");
  while (times.size() < x.shape().size()) times.insert(0, 1);  // tile
  Shape split, wide, joined;
  const size_t extra = times.size() - x.shape().size();
  for (size_t i = 0; i < times.size(); ++i) {
    const Dim size = i < extra ? Dim(1) : x.shape()[i - extra];
    if (times[i] < 0 || times[i] > int64_t{1} << 40) return c.refuse(invalid("{} repetitions", times[i]));
    if (times[i] != 1) split.push_back(1), wide.push_back(times[i]);
    split.push_back(size), wide.push_back(size), joined.push_back(size * Dim(times[i]));
  }
  c.give(c.b.reshape(c.b.broadcast(c.b.reshape(x, split), wide), joined));
}
void repeat_interleave(Call& c) {
  auto x = c.tensor("self");
  if (!c.has("dim")) x = c.b.reshape(x, {element_count(std::span<const Dim>(x.shape()))});
  const int64_t axis = c.has("dim") ? c.axis("dim", x.rank()) : 0, times = c.integer("repeats");
  if (x.rank() == 0 || times < 0 || times > int64_t{1} << 40)
    return c.refuse(invalid("{} repetitions", times));
  Shape split = x.shape(), joined = x.shape();
  split.insert(static_cast<size_t>(axis) + 1, Dim(1));
  Shape wide = split;
  wide[static_cast<size_t>(axis) + 1] = times;
  joined[static_cast<size_t>(axis)] = joined[static_cast<size_t>(axis)] * Dim(times);
  c.give(c.b.reshape(c.b.broadcast(c.b.reshape(x, split), wide), joined));
}

// ---- borders: pairs of before and after, from the last axis on
ir::Value padded(Call& c, ir::Value x, const IntList& pads, const Number& value) {
  if (pads.size() % 2 != 0 || pads.size() / 2 > x.shape().size()) {
    c.refuse(invalid("{} numbers pad a tensor with {} axes", pads.size(), x.rank()));
    return x;
  }
  for (size_t i = 0; i + 1 < pads.size(); i += 2) {
    const int64_t axis = x.rank() - 1 - static_cast<int64_t>(i / 2), before = pads[i], after = pads[i + 1];
    if (std::max({before, -before, after, -after}) > int64_t{1} << 40) {
      c.refuse(invalid("a border of {} and {}", before, after));
      return x;
    }
    if (before < 0 || after < 0) {  // a negative border is cut off
      const Dim size = x.shape()[static_cast<size_t>(axis)];
      x = c.b.one("slice", {x},
                  {{"axis", axis},
                   {"start", Shape{Dim(std::max<int64_t>(0, -before))}},
                   {"stop", Shape{max(Dim(0), size + Dim(std::min<int64_t>(0, after)))}}});
    }
    if (before > 0 || after > 0)
      x = c.b.one("pad", {x},
                  {{"axis", axis},
                   {"before", Shape{std::max<int64_t>(0, before)}},
                   {"after", Shape{std::max<int64_t>(0, after)}},
                   {"value", value.value}});
  }
  return x;
}
void constant_pad(Call& c) { c.give(padded(c, c.tensor("self"), c.integers("pad"), c.number("value"))); }

// Index i of the padded axis shows this element: the border repeats the edge, mirrors, or goes round.
int64_t shown(std::string_view mode, int64_t i, int64_t n) {
  if (mode == "replicate") return std::clamp<int64_t>(i, 0, n - 1);
  if (mode == "circular") return (i % n + n) % n;
  if (i < 0) i = -i;
  return i < n ? i : 2 * (n - 1) - i;
}
ir::Value bordered(Call& c, ir::Value x, const IntList& pads, std::string_view mode) {
  for (size_t i = 0; i + 1 < pads.size(); i += 2) {
    const int64_t axis = x.rank() - 1 - static_cast<int64_t>(i / 2);
    if (axis < 0 || !x.shape()[static_cast<size_t>(axis)].is_const()) {
      c.refuse(fail(Code::unsupported, "a border of other elements around axis {} of {}", axis,
                    weft::text(x.type())));
      return x;
    }
    const int64_t n = x.shape()[static_cast<size_t>(axis)].value(), before = pads[i], after = pads[i + 1];
    constexpr int64_t kWidest = 1 << 12;  // each element of such a border is an operand
    const int64_t most = std::min(kWidest, mode == "reflect" ? n - 1 : mode == "circular" ? n : kWidest);
    if (n == 0 || before < -n || after < -n || before > most || after > most || before + n + after < 0) {
      c.refuse(invalid("a border of {} and {} around {} elements", before, after, n));
      return x;
    }
    // One slice for each run of elements that follow each other, forward; single ones elsewhere.
    ir::ValueList runs;
    for (int64_t at = -before; at < n + after;) {
      int64_t length = 1;
      const int64_t first = shown(mode, at, n);
      while (at + length < n + after && shown(mode, at + length, n) == first + length) ++length;
      runs.push_back(
          c.b.one("slice", {x}, {{"axis", axis}, {"start", Shape{first}}, {"stop", Shape{first + length}}}));
      at += length;
    }
    if (!runs.empty()) x = c.concat(runs, axis);
  }
  return x;
}
void reflect(Call& c) { c.give(bordered(c, c.tensor("self"), c.integers("padding"), "reflect")); }
void replicate(Call& c) { c.give(bordered(c, c.tensor("self"), c.integers("padding"), "replicate")); }
void pad(Call& c) {
  const auto x = c.tensor("self");
  const std::string mode = c.text("mode");
  if (mode == "constant")
    return c.give(padded(c, x, c.integers("pad"), c.has("value") ? c.number("value") : Number{}));
  if (mode != "reflect" && mode != "replicate" && mode != "circular")
    return c.refuse(invalid("argument 'mode': there is no '{}'", mode));
  c.give(bordered(c, x, c.integers("pad"), mode));
}

// Channels to space: [..., c r², h, w] -> [..., c, h r, w r].
void pixel_shuffle(Call& c) {
  const auto x = c.tensor("self");
  const int64_t r = c.integer("upscale_factor");
  if (x.rank() < 3 || r < 1 || r > 1024) return c.refuse(invalid("wants three axes and a factor, got {}", r));
  const Shape& s = x.shape();
  const size_t n = s.size();
  Shape split(s.begin(), s.end() - 3), order, joined = split;
  for (const Dim d : {floor_div(s[n - 3], r * r), Dim(r), Dim(r), s[n - 2], s[n - 1]}) split.push_back(d);
  for (size_t i = 0; i < n - 3; ++i) order.push_back(i);
  for (const size_t i : {n - 3, n, n - 2, n + 1, n - 1}) order.push_back(i);
  for (const Dim d : {floor_div(s[n - 3], r * r), s[n - 2] * Dim(r), s[n - 1] * Dim(r)}) joined.push_back(d);
  c.give(c.b.reshape(c.b.one("permute", {c.b.reshape(x, split)}, {{"axes", order}}), joined));
}

// Rows along an axis of their own each; `xy` has the first two of them the other way round.
void meshgrid(Call& c) {
  const auto all = c.tensors("tensors");
  const bool named = c.node.attrs.contains("indexing");
  const std::string indexing = named ? c.text("indexing") : "ij";
  ir::ValueList out;
  for (size_t i = 0; i < all.size(); ++i) {
    const size_t axis = indexing == "xy" && i < 2 && all.size() > 1 ? 1 - i : i;
    Shape along(all.size(), Dim(1));
    along[axis] = element_count(std::span<const Dim>(all[i].shape()));
    out.push_back(c.b.broadcast(c.b.reshape(all[i], along), c.declared(i).shape));
  }
  c.give(std::move(out));
}

constexpr AtenOp join_ops[] = {
    {"cat.default", "tensors[], dim=0", "concat", cat},
    {"concat.default", "tensors[], dim=0", "concat", cat},
    {"constant_pad_nd.default", "self, pad=, value=0", "pad, slice", constant_pad},
    {"meshgrid.default", "tensors[]", "reshape, broadcast", meshgrid},
    {"meshgrid.indexing", "tensors[], indexing=ij", "reshape, broadcast", meshgrid},
    {"pad.default", "self, pad=, mode=constant, value=None", "pad, slice, concat", pad},
    {"pixel_shuffle.default", "self, upscale_factor=", "reshape, permute", pixel_shuffle},
    {"reflection_pad1d.default", "self, padding=", "slice, concat", reflect},
    {"reflection_pad2d.default", "self, padding=", "slice, concat", reflect},
    {"reflection_pad3d.default", "self, padding=", "slice, concat", reflect},
    {"repeat.default", "self, repeats=", "broadcast, reshape", repeat},
    {"repeat_interleave.self_int", "self, repeats=, dim=None", "broadcast, reshape", repeat_interleave},
    {"replication_pad1d.default", "self, padding=", "slice, concat", replicate},
    {"replication_pad2d.default", "self, padding=", "slice, concat", replicate},
    {"replication_pad3d.default", "self, padding=", "slice, concat", replicate},
    {"stack.default", "tensors[], dim=0", "reshape, concat", stack},
    {"tile.default", "self, dims=", "broadcast, reshape", repeat},
};

}  // namespace

extern constinit const Family join_family = {join_ops};

}  // namespace weft::importer
