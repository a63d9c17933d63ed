#include "conformance/differences.h"

#include <cmath>

namespace weft::conformance {

Slope slope_at_zero(const std::function<double(double)>& f, double h) {
  const auto central = [&](double step) { return (f(step) - f(-step)) / (2 * step); };
  const double wide = central(h), narrow = central(h / 2);
  // The error of `narrow` is a h^2 + b h^4; the difference of the two gives a, and b / a is about 1 in units
  // of x.
  return {(4 * narrow - wide) / 3, std::fabs(wide - narrow) * h * h};
}

}  // namespace weft::conformance
