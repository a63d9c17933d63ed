#pragma once
#include <string>
#include <vector>

#include "lab/kernels/contest.h"
#include "seam/preference.h"

// The lab's verdicts as the preferences that the choice of a kernel goes by.
namespace weft::lab {

/// Contenders with each "<device>.*" in them replaced by the ids of the device's kernels that take the
/// operation, but for the one that the device takes by itself where that one, the device's name, is there
/// too.
///
/// Errors   those of opening the device; invalid_argument where none of its kernels takes the operation.
Result<std::vector<std::string>> expanded(const std::vector<std::string>& contenders,
                                          const Operation& operation);

/// Keeps which kernel is the fastest for the call, if one was found to be FASTER than the baseline. The
/// baseline is the choice of a device, and the faster one is another kernel of it; others change nothing, for
/// no device could take them.
///
/// Returns  what was kept; its kernel is empty where nothing was.
/// Errors   invalid_argument where the baseline is no device; io where the cache folder can't be written.
Result<seam::Measured> record(const Comparison& comparison);

}  // namespace weft::lab
