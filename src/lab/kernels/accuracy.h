#pragma once
#include <array>
#include <optional>
#include <string>

#include "conformance/bounds.h"

// How far results are from the truth.
namespace weft::lab {

/// "[3, 7]".
std::string text_of(const std::vector<int64_t>& indices);

/// A few elements of an operand.
struct OperandValues {
  size_t operand = 0;
  std::vector<int64_t> at;  ///< of the first of them
  std::vector<double> values;
};

/// The element that is furthest off, by the share of its bound.
struct WorstElement {
  bool known = false;
  size_t result = 0;
  std::vector<int64_t> at;
  double got = 0, want = 0, bound = 0;
  /// Of each operand the element with the same indices, where the shapes are alike; else the first numbers of
  /// the row that the element depends on.
  std::vector<OperandValues> operands;
  /// "result 0 [3, 7]: got 1.5, wants 1 +- 1e-7; of operand 0 [3, 7]: 0.25".
  std::string text() const;
};

/// Of all elements that were judged.
struct Accuracy {
  uint64_t elements = 0;
  double max_abs = 0;  ///< largest distance from the truth
  double max_rel = 0;  ///< the same, by the truth's size
  double l2 = 0;       ///< norm of the distances by the norm of the truth
  double share_of_bound =
      0;  ///< the largest share of its derived bound that an element is off; above 1 it is wrong
  /// Elements by distance in units of the last place of the result's dtype: none, up to 1/2, 1, 2, 4, 8, 16,
  /// and more.
  std::array<uint64_t, 8> ulps{};
  uint64_t nans = 0, infinities = 0;  ///< of the results, right or wrong
  WorstElement worst;                 ///< its operands only where rows of a large call were judged
  std::string
      wrong;  ///< the worst element that is beyond its bound: what it is and should be; empty: none is

  /// Adds results to it. A NaN or an infinity is right only where the truth has it. Returns the element that
  /// is further off than all before it, if there is one; `worst` then has its numbers.
  std::optional<size_t> add(const conformance::Array& got, const conformance::Bounded& truth,
                            const std::string& what);

 private:
  double squares_ = 0, truth_squares_ = 0;
  double worst_share_ = -1;
};

}  // namespace weft::lab
