#include <algorithm>

#include "ir/builder.h"
#include "ir/einsum.h"

namespace weft::ir {
namespace {

/// A value whose axes have labels.
struct Labelled {
  Value x;
  Labels labels;
};

bool holds(const Labels& all, int label) { return std::find(all.begin(), all.end(), label) != all.end(); }
Labels without(const Labels& all, const Labels& some) {
  Labels rest;
  for (const int label : all)
    if (!holds(some, label)) rest.push_back(label);
  return rest;
}
Labels within(const Labels& all, const Labels& some) { return without(all, without(all, some)); }
Labels joined(Labels a, const Labels& b) {
  for (const int label : b) a.push_back(label);
  return a;
}

Labelled arranged(Builder& b, const Labelled& t, const Labels& order) {
  if (t.labels == order) return t;
  Shape axes;
  for (const int label : order)
    axes.push_back(std::find(t.labels.begin(), t.labels.end(), label) - t.labels.begin());
  return {b.one("permute", {t.x}, {{"axes", axes}}), order};
}

Labelled summed(Builder& b, const Labelled& t, const Labels& keep) {
  Shape axes;
  for (size_t d = 0; d < t.labels.size(); ++d)
    if (!holds(keep, t.labels[d])) axes.push_back(d);
  if (axes.empty()) return t;
  return {b.one("sum", {t.x}, {{"axes", axes}}), within(t.labels, keep)};
}

Shape sizes_of(const Labelled& t, const Labels& labels) {
  Shape s;
  for (const int label : labels) {
    const auto at = std::find(t.labels.begin(), t.labels.end(), label) - t.labels.begin();
    s.push_back(at < static_cast<ptrdiff_t>(t.labels.size()) ? t.x.shape()[static_cast<size_t>(at)] : Dim(1));
  }
  return s;
}

/// Broadcast, multiplied and summed: outer products, and integers.
Labelled by_product(Builder& b, const Labelled& x, const Labelled& y, const Labels& result) {
  const Labels all = joined(x.labels, without(y.labels, x.labels));
  const auto spread = [&](const Labelled& t) {
    const Labelled own = arranged(b, t, within(all, t.labels));
    return b.reshape(own.x, sizes_of(own, all));
  };
  return summed(b, {b.mul(spread(x), spread(y)), all}, result);
}

/// As matrices [shared, rows, inner] and [shared, inner, columns]; an operand that lies the other way round
/// is read so.
Labelled by_matmul(Builder& b, const Labelled& x, const Labelled& y, const Labels& result) {
  const Labels both = within(x.labels, y.labels), shared = within(both, result),
               inner = without(both, shared);
  const Labels rows = without(x.labels, both), columns = without(y.labels, both);
  struct Matrix {
    Value x;
    bool transposed;
  };
  const auto matrix = [&](const Labelled& t, const Labels& first, const Labels& second) -> Matrix {
    const bool transposed = t.labels == joined(joined(shared, second), first);
    const Labelled own = transposed ? t : arranged(b, t, joined(joined(shared, first), second));
    const Shape sizes[] = {sizes_of(t, shared), sizes_of(t, first), sizes_of(t, second)};
    Shape s = {element_count(sizes[0]), element_count(sizes[1]), element_count(sizes[2])};
    if (transposed) std::swap(s[1], s[2]);
    return {b.reshape(own.x, s), transposed};
  };
  const Matrix p = matrix(x, rows, inner), q = matrix(y, inner, columns);
  const auto product = b.matmul(p.x, q.x, p.transposed, q.transposed);
  Shape shape = sizes_of(x, joined(shared, rows));
  for (const Dim d : sizes_of(y, columns)) shape.push_back(d);
  return {b.reshape(product, shape), joined(joined(shared, rows), columns)};
}

/// Axes of size 1 that meet longer ones are left out.
Labelled unbroadcast(Builder& b, Labelled t) {
  Shape shape;
  Labels labels;
  for (size_t d = 0; d < t.labels.size(); ++d)
    if (t.labels[d] != Einsum::kBroadcast) shape.push_back(t.x.shape()[d]), labels.push_back(t.labels[d]);
  return {b.reshape(t.x, shape), labels};
}

/// Of two axes with one label the diagonal: all else becomes zero, and one of them is summed.
Labelled diagonal(Builder& b, Labelled t) {
  for (size_t j = t.labels.size(); j-- > 1;) {
    const size_t i =
        static_cast<size_t>(std::find(t.labels.begin(), t.labels.end(), t.labels[j]) - t.labels.begin());
    if (i == j) continue;
    const auto places = [&](size_t axis) {
      Shape along(t.labels.size() - axis, Dim(1));
      along[0] = t.x.shape()[axis];
      return b.reshape(b.one("iota", {}, {{"size", Shape{along[0]}}}), along);
    };
    const auto kept = b.where(b.equal(places(i), places(j)), t.x, 0);
    t.x = b.one("sum", {kept}, {{"axes", Shape{Dim(j)}}});
    t.labels.erase(j);
  }
  return t;
}

Labelled pair(Builder& b, Labelled x, Labelled y, const Labels& result) {
  x = summed(b, x, joined(y.labels, result)), y = summed(b, y, joined(x.labels, result));
  const bool outer = without(within(x.labels, y.labels), result).empty();
  return outer || !is_float(x.x.dtype()) ? by_product(b, x, y, result) : by_matmul(b, x, y, result);
}

}  // namespace

Value lower_einsum(Builder& b, std::string_view equation, Values in) {
  std::vector<const TensorType*> types;
  for (const auto v : in)
    if (v) types.push_back(&v.type());
  const auto e = parse_einsum(equation, Types(types)).value();  // infer has checked it
  if (types.size() > 2) {
    ValueList values(in.begin(), in.begin() + static_cast<ptrdiff_t>(types.size()));
    for (const auto& step : pairwise(e))
      values.push_back(b.one("einsum", {values[step.a], values[step.b]}, {{"equation", step.equation}}));
    return values.back();
  }
  const auto first = diagonal(b, unbroadcast(b, {in[0], e.operands[0]}));
  if (types.size() == 1) return arranged(b, summed(b, first, e.result), e.result).x;
  const auto second = diagonal(b, unbroadcast(b, {in[1], e.operands[1]}));
  return arranged(b, pair(b, first, second, e.result), e.result).x;
}

}  // namespace weft::ir
