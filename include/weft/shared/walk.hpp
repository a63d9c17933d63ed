#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "weft/backend.hpp"

// What all shared kernels are written with: checks for `accepts`, products of dims, and a walk over broadcast
// operands.
namespace weft::shared {

using backend::KernelRecord;
using backend::Launch;
using backend::OpCall;
using backend::Outcome;
using backend::Support;
using backend::TensorView;
using backend::TypeView;

inline constexpr int kMaxRank = 8;
inline constexpr int64_t kGrain = 16384;  // elements that are worth a piece of their own

inline int64_t product(std::span<const int64_t> dims) {
  int64_t n = 1;
  for (const int64_t d : dims) n *= d;
  return n;
}

/// So many operands that each is worth a piece.
inline int64_t grain_for(int64_t elements_each) {
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, elements_each));
}

// ---- checks
// -----------------------------------------------------------------------------------------------------

/// All operands are there, and none has more than eight axes.
inline Support arity(const OpCall& c, int64_t n_inputs, int64_t n_outputs) {
  if (c.n_inputs() != n_inputs || c.n_outputs() != n_outputs)
    return Support::no("wants {} inputs and {} outputs, got {} and {}", n_inputs, n_outputs, c.n_inputs(),
                       c.n_outputs());
  for (int64_t i = 0; i < n_inputs; ++i) {
    if (!c.input(i).has()) return Support::no("input {} is absent", i);
    if (c.input(i).rank() > kMaxRank) return Support::no("rank must be <= 8, got {}", c.input(i).rank());
  }
  for (int64_t i = 0; i < n_outputs; ++i)
    if (c.output(i).rank() > kMaxRank) return Support::no("rank must be <= 8, got {}", c.output(i).rank());
  return Support::yes();
}

inline Support same_dtype(TypeView a, TypeView b) {
  if (a.dtype() == b.dtype()) return Support::yes();
  return Support::no("dtypes must be the same, got {} and {}", a.dtype(), b.dtype());
}

/// By NumPy's rule, `from` can be read as `to`.
inline Support broadcasts(TypeView from, TypeView to) {
  const int64_t skip = to.rank() - from.rank();
  bool fits = skip >= 0;
  for (int64_t i = 0; fits && i < from.rank(); ++i)
    fits = from.max()[i] == 1 || from.max()[i] == to.max()[i + skip];
  return fits ? Support::yes() : Support::no("{} does not broadcast to {}", from.max(), to.max());
}

inline Support axis_inside(int64_t axis, int64_t rank) {
  if (axis >= 0 && axis < rank) return Support::yes();
  return Support::no("axis {} outside [0, {})", axis, rank);
}

// ---- a walk over an output and N operands that broadcast to it
// --------------------------------------------------

template <int N>
class Walk {
 public:
  Walk(std::span<const int64_t> out, const std::array<std::span<const int64_t>, N>& operands) {
    std::array<int64_t, N> step;
    step.fill(1);
    for (int64_t d = static_cast<int64_t>(out.size()) - 1; d >= 0; --d) {
      std::array<int64_t, N> stride{};
      for (int n = 0; n < N; ++n) {
        const int64_t at = d - static_cast<int64_t>(out.size() - operands[n].size());
        const int64_t size = at < 0 ? 1 : operands[n][at];
        stride[n] = size == 1 ? 0 : step[n];
        step[n] *= size;
      }
      total_ *= out[d];
      if (out[d] != 1) push(out[d], stride);
    }
  }

  int64_t total() const { return total_; }
  /// How far operand n moves from one element of a run to the next.
  int64_t stride(int n) const { return axes_[0].stride[n]; }

  /// f(out, at, count) for each run of elements of [begin, end): `out` is the output's index of the first,
  /// at[n] that of operand n.
  template <class F>
  void run(int64_t begin, int64_t end, F&& f) const {
    std::array<int64_t, kMaxRank> index{};
    int64_t rest = begin;
    for (int d = 0; d < rank_; ++d) {
      index[d] = rest % axes_[d].size;
      rest /= axes_[d].size;
    }
    while (begin < end) {
      std::array<int64_t, N> at{};
      for (int n = 0; n < N; ++n)
        for (int d = 0; d < rank_; ++d) at[n] += index[d] * axes_[d].stride[n];
      const int64_t count = std::min(end - begin, axes_[0].size - index[0]);
      f(begin, at, count);
      begin += count;
      index[0] = 0;
      for (int d = 1; d < rank_ && ++index[d] == axes_[d].size; ++d) index[d] = 0;
    }
  }

 private:
  struct Axis {
    int64_t size = 1;
    std::array<int64_t, N> stride{};
  };

  // Innermost first; an axis that goes on where the one inside it ends becomes one with it.
  void push(int64_t size, const std::array<int64_t, N>& stride) {
    if (rank_ > 0) {
      Axis& inner = axes_[rank_ - 1];
      bool joins = true;
      for (int n = 0; n < N; ++n) joins = joins && stride[n] == inner.stride[n] * inner.size;
      if (joins) {
        inner.size *= size;
        return;
      }
    }
    axes_[rank_++] = {size, stride};
  }

  std::array<Axis, kMaxRank> axes_{};
  int rank_ = 0;
  int64_t total_ = 1;
};

}  // namespace weft::shared
