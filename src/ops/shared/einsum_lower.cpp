#include <algorithm>

#include "ir/builder.h"
#include "ops/shared/einsum.h"

namespace weft::ir {
namespace {

/// A value and the labels of its elements, outermost first. Up to kMostAxes labels are an axis each; more are
/// merged into one axis, since tensors have no more.
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
size_t place(const Labels& all, int label) {
  return static_cast<size_t>(std::find(all.begin(), all.end(), label) - all.begin());
}

class Lowering {
 public:
  Lowering(Builder& b, const Einsum& e) : b_(b), e_(e) {}

  Labelled operand(size_t i, Value x) const { return diagonal(unbroadcast({x, e_.operands[i]})); }

  Labelled pair(Labelled x, Labelled y, const Labels& result) const {
    x = summed(x, joined(y.labels, result)), y = summed(y, joined(x.labels, result));
    const Labels both = within(x.labels, y.labels);
    const bool outer = without(both, result).empty();
    if (!outer && is_float(x.x.dtype())) return by_matmul(x, y, result);
    return x.labels.size() + y.labels.size() - both.size() > kMostAxes ? by_groups(x, y, result)
                                                                       : by_product(x, y, result);
  }

  Labelled arranged(Labelled t, const Labels& order) const {
    // Moves three labels to the front at a time: with the labels between and after them, that makes eight
    // axes.
    for (size_t front = 3; runs(t.labels, order).size() > kMostAxes; front += 3) {
      Labels some;
      for (size_t i = 0; i < front; ++i) some.push_back(order[i]);
      t = moved(t, joined(some, without(t.labels, some)));
    }
    return moved(t, order);
  }

  Value finished(const Labelled& t) const { return arranged(summed(t, e_.result), e_.result).x; }

 private:
  Dim count(const Labels& labels) const { return element_count(std::span<const Dim>(sizes_of(labels))); }
  Shape sizes_of(const Labels& labels) const {
    Shape s;
    for (const int label : labels) s.push_back(e_.sizes[static_cast<size_t>(label)]);
    return s;
  }
  Labelled opened(Value x, const Labels& labels) const {
    return {b_.reshape(x, labels.size() > kMostAxes ? Shape{count(labels)} : sizes_of(labels)), labels};
  }

  /// The labels of `from`, in its order, in groups that stay together in `to`.
  static std::vector<Labels> runs(const Labels& from, const Labels& to) {
    std::vector<Labels> all;
    for (size_t i = 0; i < from.size(); ++i) {
      if (i == 0 || place(to, from[i]) != place(to, from[i - 1]) + 1) all.emplace_back();
      all.back().push_back(from[i]);
    }
    return all;
  }
  Labelled moved(const Labelled& t, const Labels& to) const {
    if (t.labels == to) return t;
    Shape axes;
    if (to.size() <= kMostAxes) {
      for (const int label : to) axes.push_back(place(t.labels, label));
      return {b_.one("permute", {t.x}, {{"axes", axes}}), to};
    }
    const auto groups = runs(t.labels, to);
    Shape merged;
    for (const Labels& g : groups) merged.push_back(count(g));
    for (size_t i = 0; i < to.size(); ++i)
      for (size_t g = 0; g < groups.size(); ++g)
        if (groups[g][0] == to[i]) axes.push_back(g);
    return opened(b_.one("permute", {b_.reshape(t.x, merged)}, {{"axes", axes}}), to);
  }

  Labelled summed(const Labelled& t, const Labels& keep) const {
    const Labels kept = within(t.labels, keep), gone = without(t.labels, keep);
    if (gone.empty()) return t;
    if (t.labels.size() > kMostAxes) {
      const Value all = b_.reshape(arranged(t, joined(kept, gone)).x, {count(kept), count(gone)});
      return opened(b_.one("sum", {all}, {{"axes", Shape{1}}}), kept);
    }
    Shape axes;
    for (size_t d = 0; d < t.labels.size(); ++d)
      if (!holds(keep, t.labels[d])) axes.push_back(d);
    return {b_.one("sum", {t.x}, {{"axes", axes}}), kept};
  }

  /// Broadcast, multiplied and summed: outer products, and integers.
  Labelled by_product(const Labelled& x, const Labelled& y, const Labels& result) const {
    const Labels all = joined(x.labels, without(y.labels, x.labels));
    const auto spread = [&](const Labelled& t) {
      const Labelled own = arranged(t, within(all, t.labels));
      Shape s;
      for (const int label : all)
        s.push_back(holds(t.labels, label) ? e_.sizes[static_cast<size_t>(label)] : Dim(1));
      return b_.reshape(own.x, s);
    };
    return summed({b_.mul(spread(x), spread(y)), all}, result);
  }
  /// The same if one axis for each label would be too many: [shared, rows, columns, inner].
  Labelled by_groups(const Labelled& x, const Labelled& y, const Labels& result) const {
    const Labels both = within(x.labels, y.labels), shared = within(both, result),
                 inner = without(both, shared);
    const Labels rows = without(x.labels, both), columns = without(y.labels, both);
    const Value p = b_.reshape(arranged(x, joined(joined(shared, rows), inner)).x,
                               {count(shared), count(rows), 1, count(inner)});
    const Value q = b_.reshape(arranged(y, joined(joined(shared, columns), inner)).x,
                               {count(shared), 1, count(columns), count(inner)});
    return opened(b_.one("sum", {b_.mul(p, q)}, {{"axes", Shape{3}}}), joined(joined(shared, rows), columns));
  }

  /// As matrices [shared, rows, inner] and [shared, inner, columns]; transposed operands are read as such.
  Labelled by_matmul(const Labelled& x, const Labelled& y, const Labels& result) const {
    const Labels both = within(x.labels, y.labels), shared = within(both, result),
                 inner = without(both, shared);
    const Labels rows = without(x.labels, both), columns = without(y.labels, both);
    struct Matrix {
      Value x;
      bool transposed;
    };
    const auto matrix = [&](const Labelled& t, const Labels& first, const Labels& second) -> Matrix {
      const bool transposed = t.labels == joined(joined(shared, second), first);
      const Labelled own = transposed ? t : arranged(t, joined(joined(shared, first), second));
      Shape s = {count(shared), count(first), count(second)};
      if (transposed) std::swap(s[1], s[2]);
      return {b_.reshape(own.x, s), transposed};
    };
    const Matrix p = matrix(x, rows, inner), q = matrix(y, inner, columns);
    return opened(b_.matmul(p.x, q.x, p.transposed, q.transposed), joined(joined(shared, rows), columns));
  }

  /// Axes of size 1 that meet longer ones are left out.
  Labelled unbroadcast(const Labelled& t) const {
    Shape shape;
    Labels labels;
    for (size_t d = 0; d < t.labels.size(); ++d)
      if (t.labels[d] != Einsum::kBroadcast) shape.push_back(t.x.shape()[d]), labels.push_back(t.labels[d]);
    return {b_.reshape(t.x, shape), labels};
  }

  /// The diagonal of two axes with the same label: other elements become zero, and one axis is summed.
  Labelled diagonal(Labelled t) const {
    for (size_t j = t.labels.size(); j-- > 1;) {
      const size_t i = place(t.labels, t.labels[j]);
      if (i == j) continue;
      const auto places = [&](size_t axis) {
        Shape along(t.labels.size() - axis, Dim(1));
        along[0] = t.x.shape()[axis];
        return b_.reshape(b_.one("iota", {}, {{"size", Shape{along[0]}}}), along);
      };
      const auto kept = b_.where(b_.equal(places(i), places(j)), t.x, 0);
      t.x = b_.one("sum", {kept}, {{"axes", Shape{Dim(j)}}});
      t.labels.erase(j);
    }
    return t;
  }

  Builder& b_;
  const Einsum& e_;
};

/// An einsum for each step, so that a backend may have a kernel for it; steps with more labels than a tensor
/// has axes are lowered here.
Value stepwise(Builder& b, const Einsum& e, Values in) {
  const Lowering lower(b, e);
  std::vector<Labelled> values;
  for (size_t i = 0; i < in.size(); ++i) values.push_back({in[i], e.operands[i]});
  const auto ready = [&](size_t i) { return i < in.size() ? lower.operand(i, in[i]) : values[i]; };
  const auto many = [](const Labels& labels) { return labels.size() > kMostAxes; };
  for (const auto& step : pairwise(e)) {
    if (many(values[step.a].labels) || many(values[step.b].labels) || many(step.result)) {
      // In the order that the equations of later steps expect, as from an einsum.
      values.push_back(lower.arranged(lower.pair(ready(step.a), ready(step.b), step.result), step.result));
    } else {
      values.push_back({b.one("einsum", {values[step.a].x, values[step.b].x}, {{"equation", step.equation}}),
                        step.result});
    }
  }
  return lower.finished(values.back());
}

}  // namespace

Value lower_einsum(Builder& b, std::string_view equation, Values in) {
  std::vector<const TensorType*> types;
  for (const auto v : in)
    if (v) types.push_back(&v.type());
  const auto e = parse_einsum(equation, Types(types)).value();  // infer has checked it
  const Values operands = in.first(types.size());
  if (operands.size() > 2) return stepwise(b, e, operands);
  const Lowering lower(b, e);
  const Labelled first = lower.operand(0, in[0]);
  return lower.finished(operands.size() == 1 ? first : lower.pair(first, lower.operand(1, in[1]), e.result));
}

}  // namespace weft::ir
