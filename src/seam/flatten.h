#pragma once
#include "seam/call.h"

namespace weft::seam {

/// Whether a step of the body carries a body of its own.
bool nests(const RegionDesc& region);
/// The same body in primitive steps alone, as kernels see it: a step's own body stands in its place.
RegionDesc flatten(const RegionDesc& region);

}  // namespace weft::seam
