#include <algorithm>

#include "import/places.h"

// Ops that pick elements by number, or write them there.
namespace weft::importer {
namespace {

void embedding(Call& c) { c.give(c.b.one("embedding", {c.tensor("weight"), c.tensor("indices")})); }

void index_select(Call& c) {
  const auto x = c.tensor("self");
  const int64_t axis = c.axis("dim", x.rank());
  const auto y = gather(c.b, with_axis(c.b, x), with_axis(c.b, c.tensor("index")), axis);
  c.give(x.rank() == 0 ? c.b.reshape(y, {}) : y);
}

// ---- gather and scatter along one axis, where all other axes of index and x run together
void gather_elements(Call& c) {
  const auto given = c.tensor("self"), given_index = c.tensor("index");
  const auto x = with_axis(c.b, given), index = with_axis(c.b, given_index);
  const int64_t axis = c.axis("dim", x.rank());
  if (x.rank() != index.rank()) return c.refuse(invalid("self and index must have as many axes"));
  const auto rows = to_end(c.b, cut(c.b, x, index.shape(), axis), axis), ids = to_end(c.b, index, axis);
  const auto y = from_end(c.b, c.b.gather(rows, ids, x.rank() - 1, x.rank() - 1), axis);
  c.give(given_index.rank() == 0 ? c.b.reshape(y, {}) : y);
}
template <bool add>
void scatter(Call& c) {
  const auto x = c.tensor("self"), index = c.tensor("index");
  c.give(scattered(c, add ? "scatter_add" : "scatter", x, index, source_of(c, x, index)));
}
// The numbers of source in their order, at the places that the mask names.
void masked_scatter(Call& c) {
  const Shape& shape = c.declared().shape;
  const Dim n = element_count(std::span<const Dim>(shape));
  const auto flat = [&](ir::Value v) { return c.b.reshape(c.b.broadcast(v, shape), {n}); };
  const auto x = c.tensor("self"), source = c.tensor("source");
  const auto mask = flat(c.b.cast(c.tensor("mask"), DType::boolean));
  const auto seen = c.b.one("cumsum", {c.b.cast(mask, DType::i64)}, {{"axis", int64_t{0}}});
  const Dim most = element_count(std::span<const Dim>(source.shape()));
  if (most == Dim(0)) return c.give(c.b.broadcast(x, shape));  // the mask names no place
  const auto at = c.b.minimum(c.b.maximum(c.b.sub(seen, 1), 0), c.b.sub(number(c.b, most), 1));
  const auto given = c.b.gather(c.b.reshape(c.b.cast(source, x.dtype()), {most}), at, 0, 0);
  c.give(c.b.reshape(c.b.where(mask, given, flat(x)), shape));
}

// ---- whole slices by number
void index_write(Call& c, const char* op) {
  const auto x = c.tensor("self"), source = c.b.cast(c.tensor("source"), x.dtype());
  const auto index = with_axis(c.b, c.tensor("index"));
  const int64_t axis = c.axis("dim", x.rank());
  if (x.rank() == 0) return c.refuse(invalid("a tensor without axes has no slices"));
  if (!c.node.attrs.contains("alpha") || c.real("alpha") == 1)
    return c.give(c.b.one(op, {x, index, source}, {{"axis", axis}}));
  c.give(
      c.b.one(op, {x, index, c.b.mul(source, c.constant(c.number("alpha"), x.dtype()))}, {{"axis", axis}}));
}
void index_copy(Call& c) { index_write(c, "scatter"); }
void index_add(Call& c) { index_write(c, "scatter_add"); }
void index_fill(Call& c) {
  const auto x = c.tensor("self"), index = with_axis(c.b, c.tensor("index"));
  const int64_t axis = c.axis("dim", x.rank());
  if (x.rank() == 0) return c.refuse(invalid("a tensor without axes has no slices"));
  Shape shape = x.shape();
  shape[static_cast<size_t>(axis)] = element_count(std::span<const Dim>(index.shape()));
  const auto value = c.b.broadcast(c.as(c.required("value"), x.dtype()), shape);
  c.give(c.b.one("scatter", {x, index, value}, {{"axis", axis}}));
}

// ---- x[i, j, ...] of Python: an index tensor for some axes, which broadcast together
struct Advanced {
  std::vector<int64_t> axes;  // that are indexed, in order
  Shape order;                // these first, then the others
  ir::Value index;            // of the indexed axes as one, in row-major order
  bool together = true;       // the indexed axes are neighbours: the result has index's axes in their place
};
Shape broadcast_of(Call& c, const ir::ValueList& all) {
  Shape out;
  for (const auto v : all) {
    const Shape& s = v.shape();
    while (out.size() < s.size()) out.insert(0, Dim(1));
    for (size_t i = 0; i < s.size(); ++i) {
      Dim& d = out[out.size() - s.size() + i];
      if (d == Dim(1)) {
        d = s[i];
      } else if (!(s[i] == Dim(1)) && !(s[i] == d)) {
        c.refuse(invalid("index tensors of the shapes {} and {}", weft::text(out), weft::text(s)));
      }
    }
  }
  return out;
}
// An index may count from the end.
ir::Value from_front(ir::Builder& b, ir::Value index, Dim size) {
  const auto i = b.cast(index, DType::i64);
  return b.where(b.less(i, 0), b.add(i, number(b, size)), i);
}
Advanced advanced(Call& c, ir::Value x) {
  const auto indices = c.tensors("indices");
  Advanced a;
  ir::ValueList given;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i]) continue;
    if (indices[i].dtype() == DType::boolean || indices[i].dtype() == DType::u8)
      c.refuse(
          fail(Code::unsupported,
               "an index of bool, whose result has a size that depends on data; use where() in the model"));
    a.axes.push_back(static_cast<int64_t>(i));
    given.push_back(indices[i]);
  }
  if (a.axes.empty() || indices.size() > x.shape().size()) {
    c.refuse(invalid("{} indices for a tensor with {} axes", given.size(), x.rank()));
    a.axes.assign(1, 0);
    a.index = number(c.b, 0);
  }
  for (size_t i = 0; i + 1 < a.axes.size(); ++i) a.together &= a.axes[i + 1] == a.axes[i] + 1;
  for (const int64_t axis : a.axes) a.order.push_back(axis);
  for (int64_t i = 0; i < x.rank(); ++i)
    if (std::find(a.axes.begin(), a.axes.end(), i) == a.axes.end()) a.order.push_back(i);
  if (!c.status().ok()) return a;
  const Shape shape = broadcast_of(c, given);
  if (!c.status().ok()) return a;
  for (size_t i = 0; i < given.size(); ++i) {
    const Dim size = x.shape()[static_cast<size_t>(a.axes[i])];
    const auto here = from_front(c.b, given[i], size);
    a.index = a.index ? c.b.add(c.b.mul(a.index, number(c.b, size)), here) : here;
  }
  a.index = c.b.broadcast(a.index, shape);
  return a;
}
bool is_in_order(const Shape& order) {
  for (size_t i = 0; i < order.size(); ++i)
    if (!(order[i] == Dim(i))) return false;
  return true;
}
ir::Value ordered(ir::Builder& b, ir::Value x, const Shape& order) {
  return is_in_order(order) ? x : b.one("permute", {x}, {{"axes", order}});
}
// The indexed axes first, as one.
ir::Value joined(ir::Builder& b, ir::Value x, const Advanced& a) {
  const auto y = ordered(b, x, a.order);
  Shape shape{Dim(1)};
  for (size_t i = 0; i < y.shape().size(); ++i) {
    if (i < a.axes.size()) {
      shape[0] = shape[0] * y.shape()[i];
    } else {
      shape.push_back(y.shape()[i]);
    }
  }
  return b.reshape(y, shape);
}
// The order that puts `n` leading axes where the first indexed one stood.
Shape placed(const Advanced& a, int64_t n, int64_t rank) {
  Shape order;
  const int64_t before = a.together ? a.axes[0] : 0;
  for (int64_t i = 0; i < before; ++i) order.push_back(n + i);
  for (int64_t i = 0; i < n; ++i) order.push_back(i);
  for (int64_t i = n + before; i < rank; ++i) order.push_back(i);
  return order;
}
Shape inverse(const Shape& order) {
  Shape back = order;
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i].value())] = i;
  return back;
}
void index(Call& c) {
  const auto x = c.tensor("self");
  const Advanced a = advanced(c, x);
  if (!c.status().ok()) return;
  if (a.axes.size() == 1) return c.give(gather(c.b, x, a.index, a.axes[0]));
  const auto y = gather(c.b, joined(c.b, x, a), a.index, 0);
  c.give(ordered(c.b, y, placed(a, a.index.rank(), y.rank())));
}
void index_put(Call& c) {
  const auto x = c.tensor("self");
  const auto values = c.b.cast(c.tensor("values"), x.dtype());
  const Advanced a = advanced(c, x);
  if (!c.status().ok()) return;
  const char* op = c.flag("accumulate") ? "scatter_add" : "scatter";
  if (a.axes.size() == 1) {  // whole slices, where they lie
    Shape slices = x.shape();
    slices.erase(static_cast<size_t>(a.axes[0]));
    for (size_t i = a.index.shape().size(); i-- > 0;)
      slices.insert(static_cast<size_t>(a.axes[0]), a.index.shape()[i]);
    return c.give(c.b.one(op, {x, a.index, c.b.broadcast(values, slices)}, {{"axis", a.axes[0]}}));
  }
  const auto flat = joined(c.b, x, a);
  Shape shape = a.index.shape();
  for (size_t i = 1; i < flat.shape().size(); ++i) shape.push_back(flat.shape()[i]);
  const Shape order = placed(a, a.index.rank(), static_cast<int64_t>(shape.size()));
  Shape as_indexed;
  for (const Dim d : order) as_indexed.push_back(shape[static_cast<size_t>(d.value())]);
  const auto updates = ordered(c.b, c.b.broadcast(values, as_indexed), inverse(order));
  const auto y = c.b.one(op, {flat, a.index, updates});
  Shape apart;
  for (const Dim d : a.order) apart.push_back(x.shape()[static_cast<size_t>(d.value())]);
  c.give(ordered(c.b, c.b.reshape(y, apart), inverse(a.order)));
}

// ---- order reversed, parts moved around
void flip(Call& c) {
  auto x = c.tensor("self");
  if (c.integers("dims").empty()) return c.give(x);
  for (const Dim axis : c.axes("dims", x.rank())) {
    const Dim size = x.shape()[static_cast<size_t>(axis.value())];
    x = gather(c.b, x, c.b.sub(number(c.b, size - Dim(1)), count(c.b, size)), axis.value());
  }
  c.give(x);
}
void roll(Call& c) {
  auto x = c.tensor("self");
  const IntList shifts = c.integers("shifts"), dims = c.integers("dims");
  const bool flat = dims.empty();
  const Shape shape = x.shape();
  if (flat) x = c.b.reshape(x, {element_count(std::span<const Dim>(shape))});
  if (shifts.size() != (flat ? 1 : dims.size())) return c.refuse(invalid("wants a shift for each axis"));
  for (size_t i = 0; i < shifts.size(); ++i) {
    const int64_t axis = flat ? 0 : dims[i] < 0 ? dims[i] + x.rank() : dims[i];
    if (axis < 0 || axis >= x.rank())
      return c.refuse(invalid("axis {} of a tensor with {}", dims[i], x.rank()));
    const Dim size = x.shape()[static_cast<size_t>(axis)];
    if (!size.is_const())
      return c.refuse(fail(Code::unsupported, "a shift along an axis whose size is a symbol"));
    if (size.value() == 0) continue;
    const int64_t at = ((-shifts[i]) % size.value() + size.value()) % size.value();
    const auto part = [&](int64_t from, int64_t to) {
      return c.b.one("slice", {x}, {{"axis", axis}, {"start", Shape{from}}, {"stop", Shape{to}}});
    };
    x = c.b.one("concat", {part(at, size.value()), part(0, at)}, {{"axis", axis}});
  }
  c.give(c.b.reshape(x, shape));
}
// ---- a diagonal, by numbers into two axes as one
struct Diagonal {
  Shape order, rows;  // both axes last; and as one
  ir::Value index;
};
Diagonal diagonal_of(Call& c, ir::Value x) {
  Diagonal d;
  const int64_t a = c.axis("dim1", x.rank()), b = c.axis("dim2", x.rank());
  if (x.rank() < 2 || a == b) {
    c.refuse(invalid("a diagonal of axes {} and {} of {}", a, b, x.rank()));
    return d;
  }
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != a && i != b) d.order.push_back(i), d.rows.push_back(x.shape()[static_cast<size_t>(i)]);
  d.order.push_back(a), d.order.push_back(b);
  const Dim width = x.shape()[static_cast<size_t>(b)], first = c.integer("offset");
  const Dim start = first.value() < 0 ? Dim(-first.value()) * width : first;
  d.rows.push_back(x.shape()[static_cast<size_t>(a)] * width);
  const auto i = count(c.b, c.declared().rank() > 0 ? c.declared().shape.back() : Dim(0));
  d.index = c.b.add(c.b.mul(i, number(c.b, width + Dim(1))), number(c.b, start));
  return d;
}
void diagonal(Call& c) {
  const auto x = c.tensor("self");
  const Diagonal d = diagonal_of(c, x);
  if (c.status().ok())
    c.give(gather(c.b, c.b.reshape(ordered(c.b, x, d.order), d.rows), d.index, x.rank() - 2));
}
ir::Value write_diagonal(Call& c, ir::Value base, ir::Value part) {
  const Diagonal d = diagonal_of(c, base);
  const auto turned = ordered(c.b, base, d.order);
  const auto y =
      c.b.one("scatter", {c.b.reshape(turned, d.rows), d.index, part}, {{"axis", base.rank() - 2}});
  return ordered(c.b, c.b.reshape(y, turned.shape()), inverse(d.order));
}

// Above or below a diagonal; the rest is zero.
void triangle(Call& c, bool upper) {
  const auto x = c.tensor("self");
  if (x.rank() < 2) return c.refuse(invalid("wants at least two axes"));
  const Dim rows = x.shape()[x.shape().size() - 2], columns = x.shape().back();
  const auto i = c.b.reshape(count(c.b, rows), {rows, 1}), j = count(c.b, columns);
  const auto diagonal = c.b.add(i, static_cast<double>(c.integer("diagonal")));
  const auto kept = c.b.one(upper ? "greater_equal" : "less_equal", {j, diagonal});
  if (x.dtype() == DType::boolean) return c.give(c.b.bit_and(kept, x));
  c.give(c.b.where(kept, x, 0));
}
void triu(Call& c) { triangle(c, true); }
void tril(Call& c) { triangle(c, false); }

constexpr AtenOp index_ops[] = {
    {"diagonal.default", "self, offset=0, dim1=0, dim2=1", "gather", diagonal, write_diagonal},
    {"embedding.default", "weight, indices", "embedding", embedding},
    {"flip.default", "self, dims=", "gather", flip},
    {"gather.default", "self, dim=, index", "gather", gather_elements},
    {"index.Tensor", "self, indices[]", "gather", index},
    {"index_add.default", "self, dim=, index, source, alpha=1", "scatter_add", index_add},
    {"index_copy.default", "self, dim=, index, source", "scatter", index_copy},
    {"index_fill.int_Scalar", "self, dim=, index, value", "scatter", index_fill},
    {"index_put.default", "self, indices[], values, accumulate=false", "scatter, scatter_add", index_put},
    {"index_select.default", "self, dim=, index", "gather", index_select},
    {"masked_scatter.default", "self, mask, source", "cumsum, gather, where", masked_scatter},
    {"roll.default", "self, shifts=, dims=[]", "slice, concat", roll},
    {"scatter.src", "self, dim=, index, src", "scatter", scatter<false>},
    {"scatter.value", "self, dim=, index, value=", "scatter", scatter<false>},
    {"scatter_add.default", "self, dim=, index, src", "scatter_add", scatter<true>},
    {"tril.default", "self, diagonal=0", "iota, where", tril},
    {"triu.default", "self, diagonal=0", "iota, where", triu},
};

}  // namespace

extern constinit const Family index_family = {index_ops};

}  // namespace weft::importer
