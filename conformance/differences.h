#pragma once
#include <functional>

#include "conformance/numbers.h"

namespace weft::conformance {

/// A derivative by central differences at h and h / 2, extrapolated (Richardson): exact but for h^4 f^(5) /
/// 480 and the rounding of f over h.
struct Slope {
  double value = 0;
  double truncation = 0;  ///< what the extrapolation changed, times h^2: how far the next order may reach
};
Slope slope_at_zero(const std::function<double(double)>& f, double h);

inline constexpr double kStep = 0x1p-11;

}  // namespace weft::conformance
