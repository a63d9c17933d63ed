#pragma once
#include "conformance/sizes/draw.h"

namespace weft::conformance {

/// How long the oracle takes for a call, in elements that it copies: about a tenth of a microsecond each.
double oracle_work(const DrawnCall& call);

}  // namespace weft::conformance
