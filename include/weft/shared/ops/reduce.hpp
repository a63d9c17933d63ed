#pragma once
#include <limits>

#include "weft/shared/numbers.hpp"
#include "weft/shared/walk.hpp"

// sum prod max min.
namespace weft::shared {

namespace detail {

/// The axes of a reduction, joined where neighbours are of one kind: those that stay and those that are
/// folded.
struct Fold {
  struct Axis {
    int64_t size, stride;
  };
  std::array<Axis, kMaxRank> kept{}, folded{};  // outermost first
  int n_kept = 0, n_folded = 0;
  int64_t outputs = 1, folds = 1;

  Fold(std::span<const int64_t> dims, std::span<const int64_t> axes) {
    int64_t stride = product(dims);
    int last = -1;  // 0: kept, 1: folded
    for (size_t d = 0; d < dims.size(); ++d) {
      const bool fold = axes.empty() || std::find(axes.begin(), axes.end(), int64_t(d)) != axes.end();
      (fold ? folds : outputs) *= dims[d];
      stride = dims[d] == 0 ? 0 : stride / dims[d];
      if (dims[d] == 1) continue;
      auto& list = fold ? folded : kept;
      int& n = fold ? n_folded : n_kept;
      if (last == int(fold)) {
        list[n - 1] = {list[n - 1].size * dims[d], stride};
      } else {
        list[n++] = {dims[d], stride};
      }
      last = fold;
    }
    if (n_kept == 0) kept[n_kept++] = {1, 0};
    if (n_folded == 0) folded[n_folded++] = {1, 0};
  }
  /// Where element `i` of the axes lies.
  static int64_t offset(const std::array<Axis, kMaxRank>& axes, int n, int64_t i) {
    int64_t at = 0;
    for (int d = n - 1; d >= 0; --d) {
      at += i % axes[d].size * axes[d].stride;
      i /= axes[d].size;
    }
    return at;
  }
};

struct SumFold {
  template <class T>
  static Wide<T> start() {
    return 0;
  }
  static double step(double a, double v) { return a + v; }
  static uint64_t step(uint64_t a, uint64_t v) { return a + v; }
  static int64_t step(int64_t a, int64_t v) { return static_cast<int64_t>(uint64_t(a) + uint64_t(v)); }
};
struct ProdFold {
  template <class T>
  static Wide<T> start() {
    return 1;
  }
  static double step(double a, double v) { return a * v; }
  static uint64_t step(uint64_t a, uint64_t v) { return a * v; }
  static int64_t step(int64_t a, int64_t v) { return static_cast<int64_t>(uint64_t(a) * uint64_t(v)); }
};
struct MaxFold {
  template <class T>
  static Wide<T> start() {
    if constexpr (is_any_float<T>) return -std::numeric_limits<double>::infinity();
    if constexpr (std::is_integral_v<T>) return std::numeric_limits<T>::lowest();
    return 0;
  }
  template <class W>
  static W step(W a, W v) {
    return v > a || v != v ? v : a;
  }  // a NaN stays: nothing is larger
};
struct MinFold {
  template <class T>
  static Wide<T> start() {
    if constexpr (is_any_float<T>) return std::numeric_limits<double>::infinity();
    if constexpr (std::is_integral_v<T>) return std::numeric_limits<T>::max();
    return 1;
  }
  template <class W>
  static W step(W a, W v) {
    return v < a || v != v ? v : a;
  }
};

/// A few neighbouring outputs at a time, each folded in row-major order: the bits do not depend on how many.
template <class T, class Op>
void fold_outputs(const Fold& fold, const T* x, T* y, int64_t begin, int64_t end) {
  constexpr int64_t kTogether = 32;
  const auto& inner = fold.kept[fold.n_kept - 1];
  while (begin < end) {
    const int64_t n = std::min({kTogether, end - begin, inner.size - begin % inner.size});
    const T* from = x + Fold::offset(fold.kept, fold.n_kept, begin);
    Wide<T> total[kTogether];
    std::fill_n(total, n, Op::template start<T>());
    const auto& run = fold.folded[fold.n_folded - 1];
    for (int64_t i = 0; i < fold.folds; i += run.size) {
      const T* row = from + Fold::offset(fold.folded, fold.n_folded, i);
      for (int64_t k = 0; k < run.size; ++k, row += run.stride)
        for (int64_t j = 0; j < n; ++j) total[j] = Op::step(total[j], load(row[j * inner.stride]));
    }
    for (int64_t j = 0; j < n; ++j) y[begin + j] = store<T>(total[j]);
    begin += n;
  }
}

template <class Op, Kinds kinds>
KernelRecord reduce_record(const char* op) {
  return {.op = op,
          .variant = "shared",
          .reads = {"axes", "keep"},
          .accepts = [](const OpCall& c) -> Support {
            if (auto s = arity(c, 1, 1); !s) return s;
            if (!includes(kinds, c.input(0).dtype()))
              return Support::no("dtype must be {}, got {}", name(kinds), c.input(0).dtype());
            for (const int64_t axis : c.attr("axes").ints())
              if (auto s = axis_inside(axis, c.input(0).rank()); !s) return s;
            return same_dtype(c.input(0), c.output(0));
          },
          .launch = [](const Launch& l) -> Outcome {
            const TensorView x = l.input(0), y = l.output(0);
            const Fold fold(x.dims(), l.call().attr("axes").ints());
            visit<kinds>(x.dtype(), [&]<class T>(Tag<T>) {
              l.host().parallel_for(fold.outputs, grain_for(fold.folds), [&](int64_t begin, int64_t end) {
                fold_outputs<T, Op>(fold, x.data<T>(), y.data<T>(), begin, end);
              });
            });
            return Outcome::ok();
          }};
}
}  // namespace detail

/// sum, prod: 0 and 1 for nothing; floats accumulate in double, integers wrap around. max, min: of nothing
/// the infinity or integer that any element beats; a NaN makes it NaN.
inline std::array<KernelRecord, 4> reduce_records() {
  return {detail::reduce_record<detail::SumFold, Kinds::numbers>("sum"),
          detail::reduce_record<detail::ProdFold, Kinds::numbers>("prod"),
          detail::reduce_record<detail::MaxFold, Kinds::compute>("max"),
          detail::reduce_record<detail::MinFold, Kinds::compute>("min")};
}

}  // namespace weft::shared
