#pragma once
#include <array>
#include <string>

#include "conformance/bounds.h"

// How far results are from the truth.
namespace weft::lab {

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
  std::string
      wrong;  ///< the worst element that is beyond its bound: what it is and should be; empty: none is

  /// Adds results to it. A NaN or an infinity is right only where the truth has it.
  void add(const conformance::Array& got, const conformance::Bounded& truth, const std::string& what);

 private:
  double squares_ = 0, truth_squares_ = 0;
};

}  // namespace weft::lab
