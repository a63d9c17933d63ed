#pragma once
#include "conformance/check.h"
#include "conformance/seam/usual.h"

namespace weft::conformance {

/// A case for `ask` as it is, which kernels may exceed, and one in which it asks for this level. Inline:
/// tests that link the rig without the suite have no CheckRun.
inline void run_with_level(CheckRun& run, Ask ask, uint8_t level,
                           const std::function<Found(const Ask&)>& found) {
  run.run(title(ask), [&] { return found(ask); });
  ask.determinism = level;
  run.run(title(ask) + ", asked for", [&] { return found(ask); });
}

}  // namespace weft::conformance
