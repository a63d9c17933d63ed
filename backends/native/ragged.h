#pragma once
#include <algorithm>

#include "weft/backend.hpp"

// Shared by the kernels for ragged sequences: sequences of different lengths in one axis of tokens.
namespace weft::native {

/// The tokens [begin, end) of one sequence; the first has `position` in it. `sequence` is -1 for tokens of
/// none.
struct Run {
  int64_t sequence, begin, end, position;
};

class Ragged {
 public:
  /// `length` [batch] and `offsets` [batch + 1], of i32 or i64.
  Ragged(backend::TensorView length, backend::TensorView offsets, int64_t tokens, int64_t capacity)
      : length_(length), offsets_(offsets), tokens_(tokens), capacity_(capacity) {}

  int64_t tokens() const { return tokens_; }
  /// The run that begins at token t. Offsets may be out of order: token t belongs to sequence i if i + 1 of
  /// them are at most t.
  Run run_at(int64_t t) const {
    const int64_t batch = length_.dim(0);
    int64_t begun = 0, end = tokens_;
    for (int64_t i = 0; i <= batch; ++i) {
      const int64_t at = offset(i);
      begun += at <= t;
      if (at > t) end = std::min(end, at);
    }
    if (begun == 0 || begun > batch) return {-1, t, end, 0};
    const int64_t had = std::clamp<int64_t>(number(length_, begun - 1), 0, capacity_);
    return {begun - 1, t, end, had + t - offset(begun - 1)};
  }

 private:
  static int64_t number(backend::TensorView of, int64_t i) {
    return of.dtype() == DType::i32 ? of.data<int32_t>()[i] : of.data<int64_t>()[i];
  }
  int64_t offset(int64_t i) const { return std::clamp<int64_t>(number(offsets_, i), 0, tokens_); }

  backend::TensorView length_, offsets_;
  int64_t tokens_, capacity_;
};

inline backend::Support accepts_ragged(backend::TypeView length, backend::TypeView offsets, int64_t batch) {
  const auto is_list = [](backend::TypeView t, int64_t n) {
    return t.has() && (t.dtype() == DType::i32 || t.dtype() == DType::i64) && t.rank() == 1 &&
           t.max()[0] == n;
  };
  if (batch >= 1 && is_list(length, batch) && is_list(offsets, batch + 1)) return backend::Support::yes();
  return backend::Support::no("wants whole numbers, a length for each of {} sequences and {} offsets", batch,
                              batch + 1);
}

}  // namespace weft::native
