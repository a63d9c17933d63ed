#include <algorithm>

#include "import/call.h"

// Views: the same elements under another shape, in another order, or a part of them.
namespace weft::importer {
namespace {

// The file has the sizes; -1 among the arguments is what follows from them.
void reshape(Call& c) { c.give(c.b.reshape(c.tensor("self"), c.declared().shape)); }
ir::Value write_reshaped(Call& c, ir::Value base, ir::Value part) { return c.b.reshape(part, base.shape()); }

void expand(Call& c) { c.give(c.b.broadcast(c.tensor("self"), c.declared().shape)); }
ir::Value write_expanded(Call& c, ir::Value base, ir::Value part) {
  if (!(base.shape() == part.shape()))
    c.refuse(fail(Code::unsupported, "a write to an expanded tensor, whose elements share memory"));
  return part;
}

// ---- orders of axes
Shape order_of(Call&, int64_t rank) {
  Shape order;
  for (int64_t i = 0; i < rank; ++i) order.push_back(i);
  return order;
}
Shape swapped(Call& c, int64_t rank, int64_t a, int64_t b) {
  Shape order = order_of(c, rank);
  if (rank > 0) std::swap(order[static_cast<size_t>(a)], order[static_cast<size_t>(b)]);
  return order;
}
Shape transpose_order(Call& c, int64_t rank) {
  return swapped(c, rank, c.axis("dim0", rank), c.axis("dim1", rank));
}
Shape swap_order(Call& c, int64_t rank) {
  return swapped(c, rank, c.axis("axis0", rank), c.axis("axis1", rank));
}
Shape last_two_order(Call& c, int64_t rank) {
  return rank < 2 ? order_of(c, rank) : swapped(c, rank, rank - 2, rank - 1);
}
Shape reversed_order(Call&, int64_t rank) {
  Shape order;
  for (int64_t i = rank; i-- > 0;) order.push_back(i);
  return order;
}
Shape permute_order(Call& c, int64_t rank) {
  Shape order;
  for (const int64_t a : c.integers("dims")) order.push_back(a < 0 ? a + rank : a);
  return order;
}
// One axis moves, the others keep their order.
Shape move_order(Call& c, int64_t rank) {
  const int64_t from = c.axis("source", rank), to = c.axis("destination", rank);
  Shape order;
  for (int64_t i = 0; i < rank; ++i)
    if (i != from) order.push_back(i);
  if (rank > 0) order.insert(static_cast<size_t>(to), Dim(from));
  return order;
}
template <Shape (*Order)(Call&, int64_t)>
void permute(Call& c) {
  const auto x = c.tensor("self");
  const Shape order = Order(c, x.rank());
  if (x.rank() == 0) return c.give(x);
  c.give(c.b.one("permute", {x}, {{"axes", order}}));
}
template <Shape (*Order)(Call&, int64_t)>
ir::Value write_permuted(Call& c, ir::Value base, ir::Value part) {
  const Shape order = Order(c, base.rank());
  Shape back = order;
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i].value())] = i;
  return base.rank() == 0 ? part : c.b.one("permute", {part}, {{"axes", back}});
}

// ---- parts
struct Part {
  int64_t axis = 0, step = 1;
  Dim start = 0, stop = 0;
};
ir::Value take(ir::Builder& b, ir::Value x, const Part& p) {
  return b.one("slice", {x},
               {{"axis", p.axis}, {"start", Shape{p.start}}, {"stop", Shape{p.stop}}, {"step", p.step}});
}
// Bounds count from the end when they are negative, and end where the axis does.
Dim bound(Call& c, Dim size, Dim given) {
  if (given.min() >= 0) return min(given, size);
  if (given.max() >= 0)
    c.refuse(fail(Code::unsupported, "a bound, {}, that may count from either end", given.text()));
  return max(size + given, Dim(0));
}

Part slice_part(Call& c, ir::Value x) {
  if (x.rank() == 0) {
    c.refuse(invalid("a tensor without axes has no parts"));
    return {};
  }
  Part p{.axis = c.axis("dim", x.rank()), .step = c.integer("step")};
  const Dim size = x.shape()[static_cast<size_t>(p.axis)];
  p.start = bound(c, size, c.has("start") ? c.dim("start") : Dim(0));
  p.stop = c.has("end") ? bound(c, size, c.dim("end")) : size;
  return p;
}
// A bound that is a symbol may be missing in the file, or be known to lie within the axis; the file has the
// size of the result.
Part slice_part_of_view(Call& c, ir::Value x) {
  Part p = slice_part(c, x);
  if (p.step != 1 || c.declared().rank() != x.rank() || x.rank() == 0) return p;
  const Dim size = c.declared().shape[static_cast<size_t>(p.axis)];
  if (size.is_const() || size == p.stop - p.start) return p;
  const auto follows = [&](const char* name) { return !c.has(name) || !c.dim(name).is_const(); };
  if (follows("end"))
    p.stop = p.start + size;
  else if (follows("start"))
    p.start = p.stop - size;
  return p;
}
Part select_part(Call& c, ir::Value x) {
  if (x.rank() == 0) {
    c.refuse(invalid("a tensor without axes has no parts"));
    return {};
  }
  const int64_t axis = c.axis("dim", x.rank());
  const Dim size = x.shape()[static_cast<size_t>(axis)], index = c.dim("index");
  const Dim at = index.max() < 0 ? size + index : index;
  if (at.min() < 0 || (size - at).min() < 1)
    c.refuse(invalid("argument 'index': {} is outside of an axis of size {}", index.text(), size.text()));
  return {.axis = axis, .start = at, .stop = at + Dim(1)};
}
Part narrow_part(Call& c, ir::Value x) {
  if (x.rank() == 0) {
    c.refuse(invalid("a tensor without axes has no parts"));
    return {};
  }
  Part p{.axis = c.axis("dim", x.rank())};
  p.start = bound(c, x.shape()[static_cast<size_t>(p.axis)], c.dim("start"));
  const Dim length = c.dim("length");
  p.stop =
      p.start + (length.is_const() ? Dim(std::clamp<int64_t>(length.value(), 0, int64_t{1} << 48)) : length);
  return p;
}
void slice(Call& c) {
  const auto x = c.tensor("self");
  c.give(take(c.b, x, slice_part_of_view(c, x)));
}
void narrow(Call& c) {
  const auto x = c.tensor("self");
  c.give(take(c.b, x, narrow_part(c, x)));
}
Shape without(const Shape& shape, int64_t axis) {
  Shape out;
  for (size_t i = 0; i < shape.size(); ++i)
    if (static_cast<int64_t>(i) != axis) out.push_back(shape[i]);
  return out;
}
void select(Call& c) {
  const auto x = c.tensor("self");
  const Part p = select_part(c, x);
  c.give(c.b.reshape(take(c.b, x, p), without(x.shape(), p.axis)));
}

// `base` with that part of it replaced.
ir::Value put(ir::Builder& b, ir::Value base, const Part& p, ir::Value part) {
  const Dim size = base.shape()[static_cast<size_t>(p.axis)];
  if (p.step == 1) {
    const auto front = take(b, base, {.axis = p.axis, .start = 0, .stop = p.start});
    const auto back = take(b, base, {.axis = p.axis, .start = max(p.start, p.stop), .stop = size});
    return b.one("concat", {front, part, back}, {{"axis", p.axis}});
  }
  const auto number = [&](Dim n) { return b.full(1, {}, DType::i64, n); };
  const Dim n = part.shape()[static_cast<size_t>(p.axis)];
  const auto i = b.one("iota", {}, {{"size", Shape{n}}, {"dtype", std::string("i64")}});
  const auto index = b.add(b.mul(i, number(p.step)), number(p.start));
  return b.one("scatter", {base, index, part}, {{"axis", p.axis}});
}
ir::Value write_slice(Call& c, ir::Value base, ir::Value part) {
  return put(c.b, base, slice_part_of_view(c, base), part);
}
ir::Value write_narrow(Call& c, ir::Value base, ir::Value part) {
  return put(c.b, base, narrow_part(c, base), part);
}
ir::Value write_select(Call& c, ir::Value base, ir::Value part) {
  const Part p = select_part(c, base);
  Shape kept = base.shape();
  if (!kept.empty()) kept[static_cast<size_t>(p.axis)] = 1;
  return put(c.b, base, p, c.b.reshape(part, kept));
}
// The same as ops of their own.
void slice_scatter(Call& c) {
  const auto x = c.tensor("self"), source = c.tensor("src");
  c.give(put(c.b, x, slice_part(c, x), c.b.cast(source, x.dtype())));
}
void select_scatter(Call& c) {
  const auto x = c.tensor("self");
  c.give(write_select(c, x, c.b.cast(c.tensor("src"), x.dtype())));
}

// ---- several parts
void parts(Call& c, ir::Value x, int64_t axis, const std::vector<Dim>& sizes) {
  ir::ValueList out;
  Dim at = 0;
  for (const Dim size : sizes) {
    out.push_back(take(c.b, x, {.axis = axis, .start = at, .stop = at + size}));
    at = at + size;
  }
  c.give(std::move(out));
}
// As many as the file says, whose sizes it knows.
void split(Call& c) {
  const auto x = c.tensor("self");
  const int64_t axis = c.axis("dim", x.rank());
  std::vector<Dim> sizes;
  for (size_t i = 0; i < c.n_declared(); ++i) {
    if (c.declared(i).rank() != x.rank() || x.rank() == 0)
      return c.refuse(invalid("its parts have other axes"));
    sizes.push_back(c.declared(i).shape[static_cast<size_t>(axis)]);
  }
  parts(c, x, axis, sizes);
}
void unbind(Call& c) {
  const auto x = c.tensor("self");
  const int64_t axis = c.axis("dim", x.rank());
  if (x.rank() == 0) return c.refuse(invalid("a tensor without axes has no parts"));
  parts(c, x, axis, std::vector<Dim>(c.n_declared(), Dim(1)));
  for (auto& part : c.results) part = c.b.reshape(part, without(x.shape(), axis));
}

// Of several views, the call says which is written.
ir::Value write_split(Call& c, ir::Value base, ir::Value part) {
  Part p{.axis = c.axis("dim", base.rank())};
  for (size_t i = 0; i <= c.which; ++i) {
    p.start = p.stop;
    p.stop = p.start + c.declared(i).shape[static_cast<size_t>(p.axis)];
  }
  return put(c.b, base, p, part);
}
ir::Value write_unbound(Call& c, ir::Value base, ir::Value part) {
  const int64_t axis = c.axis("dim", base.rank());
  Shape kept = base.shape();
  kept[static_cast<size_t>(axis)] = 1;
  const Dim at = c.which;
  return put(c.b, base, {.axis = axis, .start = at, .stop = at + Dim(1)}, c.b.reshape(part, kept));
}

constexpr AtenOp shape_ops[] = {
    {"_reshape_alias.default", "self", "reshape", reshape, write_reshaped},
    {"_unsafe_view.default", "self", "reshape", reshape, write_reshaped},
    {"chunk.default", "self, chunks=, dim=0", "slice", split, write_split},
    {"expand.default", "self", "broadcast", expand, write_expanded},
    {"expand_as.default", "self, other", "broadcast", expand, write_expanded},
    {"flatten.using_ints", "self", "reshape", reshape, write_reshaped, true},
    {"mT.default", "self", "permute", permute<last_two_order>, write_permuted<last_two_order>},
    {"movedim.int", "self, source=, destination=", "permute", permute<move_order>,
     write_permuted<move_order>},
    {"narrow.default", "self, dim=, start=, length=", "slice", narrow, write_narrow},
    {"numpy_T.default", "self", "permute", permute<reversed_order>, write_permuted<reversed_order>},
    {"permute.default", "self, dims=", "permute", permute<permute_order>, write_permuted<permute_order>},
    {"reshape.default", "self", "reshape", reshape, write_reshaped, true},
    {"select.int", "self, dim=, index=", "slice, reshape", select, write_select},
    {"select_scatter.default", "self, src, dim=, index=", "concat", select_scatter},
    {"slice.Tensor", "self, dim=0, start=None, end=None, step=1", "slice", slice, write_slice},
    {"slice_scatter.default", "self, src, dim=0, start=None, end=None, step=1", "concat, scatter",
     slice_scatter},
    {"split.Tensor", "self, split_size=None, dim=0", "slice", split, write_split},
    {"split.sizes", "self, split_size=None, dim=0", "slice", split, write_split},
    {"split_with_sizes.default", "self, split_sizes=None, dim=0", "slice", split, write_split},
    {"squeeze.default", "self", "reshape", reshape, write_reshaped},
    {"squeeze.dim", "self", "reshape", reshape, write_reshaped},
    {"squeeze.dims", "self", "reshape", reshape, write_reshaped},
    {"swapaxes.default", "self, axis0=, axis1=", "permute", permute<swap_order>, write_permuted<swap_order>},
    {"t.default", "self", "permute", permute<last_two_order>, write_permuted<last_two_order>},
    {"tensor_split.sections", "self, sections=, dim=0", "slice", split, write_split},
    {"transpose.int", "self, dim0=, dim1=", "permute", permute<transpose_order>,
     write_permuted<transpose_order>},
    {"unbind.int", "self, dim=0", "slice, reshape", unbind, write_unbound},
    {"unflatten.int", "self", "reshape", reshape, write_reshaped},
    {"unsqueeze.default", "self", "reshape", reshape, write_reshaped},
    {"view.default", "self", "reshape", reshape, write_reshaped},
    {"view_as.default", "self, other", "reshape", reshape, write_reshaped},
};

}  // namespace

extern constinit const Family shape_family = {shape_ops};

}  // namespace weft::importer
