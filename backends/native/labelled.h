#pragma once
#include <algorithm>
#include <memory>
#include <optional>

#include "backends/native/spread.h"
#include "weft/backend.hpp"
#include "weft/shared/contraction.hpp"

// Strided values whose axes have labels, and the product of two of them as one matrix product for each index
// of the labels that they share. Operands are read in place if their axes fold into rows and columns.
namespace weft::native {

using Labels = std::vector<int>;

struct Axis {
  int label;
  int64_t size, stride;
};
template <class T>
struct Labelled {
  const T* data = nullptr;
  std::vector<Axis> axes;
};

/// Temporary memory of a launch.
template <class T>
class Temporaries {
 public:
  T* make(int64_t n) {
    return all_.emplace_back(std::make_unique_for_overwrite<T[]>(static_cast<size_t>(n))).get();
  }

 private:
  std::vector<std::unique_ptr<T[]>> all_;
};

inline int64_t places(std::span<const Axis> axes) {
  int64_t n = 1;
  for (const Axis& a : axes) n *= a.size;
  return n;
}
inline shared::LabelSet set_of(std::span<const Axis> axes) {
  shared::LabelSet set = 0;
  for (const Axis& a : axes) set |= shared::LabelSet{1} << a.label;
  return set;
}

/// Calls f(offset) for each index of `axes`, the last axis fastest.
template <class F>
void each_place(std::span<const Axis> axes, F f) {
  std::vector<int64_t> at(axes.size(), 0);
  int64_t offset = 0;
  for (int64_t left = places(axes); left > 0; --left) {
    f(offset);
    for (size_t d = axes.size(); d-- > 0;) {
      offset += axes[d].stride;
      if (++at[d] < axes[d].size) break;
      offset -= axes[d].size * axes[d].stride;
      at[d] = 0;
    }
  }
}
inline int64_t offset_of(std::span<const Axis> axes, int64_t place) {
  int64_t offset = 0;
  for (size_t d = axes.size(); d-- > 0; place /= axes[d].size)
    offset += place % axes[d].size * axes[d].stride;
  return offset;
}

/// The axes of `x` with these labels: in the labels' order, or, for a set, in that of x.
template <class T>
std::vector<Axis> chosen(const Labelled<T>& x, const Labels& labels) {
  std::vector<Axis> axes;
  for (const int label : labels)
    for (const Axis& a : x.axes)
      if (a.label == label) axes.push_back(a);
  return axes;
}
template <class T>
std::vector<Axis> chosen(const Labelled<T>& x, shared::LabelSet labels) {
  std::vector<Axis> axes;
  for (const Axis& a : x.axes)
    if (labels >> a.label & 1) axes.push_back(a);
  return axes;
}
inline Labels labels_of(std::span<const Axis> axes) {
  Labels all;
  for (const Axis& a : axes) all.push_back(a.label);
  return all;
}
inline Labels joined(Labels a, const Labels& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Writes all elements to `to` in row-major order of `labels`; sums axes with other labels.
template <class T>
Labelled<T> arranged(const Labelled<T>& x, const Labels& labels, T* to) {
  Labelled<T> y{to, chosen(x, labels)};
  const auto summed = chosen(x, set_of(x.axes) & ~set_of(y.axes));
  T* at = to;
  each_place(y.axes, [&](int64_t offset) {
    double total = summed.empty() ? double{x.data[offset]} : 0;
    if (!summed.empty()) each_place(summed, [&](int64_t more) { total += double{x.data[offset + more]}; });
    *at++ = static_cast<T>(total);
  });
  int64_t stride = 1;
  for (size_t d = y.axes.size(); d-- > 0; stride *= y.axes[d].size) y.axes[d].stride = stride;
  return y;
}

/// The axes merged into one, if their strides allow it. An axis of size 1 fits any stride.
inline std::optional<Axis> folded(std::span<const Axis> axes) {
  Axis one{-1, 1, 1};
  for (size_t d = axes.size(); d-- > 0;) {
    if (axes[d].size == 1) continue;
    if (one.size == 1) one.stride = axes[d].stride;
    if (axes[d].stride != one.stride * one.size) return std::nullopt;
    one.size *= axes[d].size;
  }
  return one;
}

/// A matrix for each index of `batch`.
template <class T>
struct Matrices {
  const T* data;
  std::vector<Axis> batch;
  Axis rows, columns;
};
/// Copied if needed: if rows or columns do not fold, or neither is contiguous and `packs` requires one.
template <class T>
Matrices<T> matrices(Temporaries<T>& memory, const Labelled<T>& x, const Labels& batch, const Labels& rows,
                     const Labels& columns, bool packs) {
  const auto r = folded(chosen(x, rows)), c = folded(chosen(x, columns));
  if (r && c && (!packs || r->stride == 1 || c->stride == 1)) return {x.data, chosen(x, batch), *r, *c};
  const auto copy = arranged(x, joined(joined(batch, rows), columns), memory.make(places(x.axes)));
  return {copy.data, chosen(copy, batch), *folded(chosen(copy, rows)), *folded(chosen(copy, columns))};
}

/// x * y, summed over the labels that are not in `keep`. The axes are the shared ones, then those of x alone
/// and those of y alone, or the latter two swapped. Written to `to` if that gives the order `wanted`; both
/// may be null.
template <class T>
Labelled<T> contracted(const backend::Host& host, Temporaries<T>& memory, Labelled<T> x, Labelled<T> y,
                       shared::LabelSet keep, const Labels* wanted, T* to) {
  for (auto [one, other] : {std::pair{&x, &y}, std::pair{&y, &x}}) {
    const auto left = chosen(*one, keep | set_of(other->axes));
    if (left.size() != one->axes.size()) *one = arranged(*one, labels_of(left), memory.make(places(left)));
  }
  const shared::LabelSet both = set_of(x.axes) & set_of(y.axes);
  const Labels batch = labels_of(chosen(x, both & keep)), inner = labels_of(chosen(x, both & ~keep)),
               rows = labels_of(chosen(x, ~both)), columns = labels_of(chosen(y, ~both));
  if (wanted && !columns.empty() && joined(joined(batch, columns), rows) == *wanted)
    return contracted<T>(host, memory, y, x, keep, wanted, to);
  Labelled<T> z{nullptr, chosen(x, joined(batch, rows))};
  for (const Axis& a : chosen(y, columns)) z.axes.push_back(a);
  int64_t stride = 1;
  for (size_t d = z.axes.size(); d-- > 0; stride *= z.axes[d].size) z.axes[d].stride = stride;
  T* const result = to && labels_of(z.axes) == *wanted ? to : memory.make(stride);
  z.data = result;

  const Matrices<T> a = matrices(memory, x, batch, rows, inner, false),
                    b = matrices(memory, y, batch, inner, columns, true);
  const Product<T> whole{.m = a.rows.size,
                         .n = b.columns.size,
                         .k = a.columns.size,
                         .a = a.data,
                         .a_row = a.rows.stride,
                         .a_column = a.columns.stride,
                         .b = b.data,
                         .b_row = b.rows.stride,
                         .b_column = b.columns.stride,
                         .c = result,
                         .c_row = b.columns.size};
  multiply_all<T>(host, places(a.batch), whole, [&](int64_t i) {
    Product<T> p = whole;
    p.a += offset_of(a.batch, i), p.b += offset_of(b.batch, i), p.c += i * whole.m * whole.n;
    return p;
  });
  return z;
}

}  // namespace weft::native
