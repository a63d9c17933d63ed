#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>

#include "lab/results/device_limits.h"
#include "lab/results/limits.h"

// What a result was measured on.
namespace weft::lab {

struct Machine {
  std::string processor, system;
  int cores = 1, threads = 1;
  uint64_t memory_bytes = 0;
  double load = 0;                              ///< processes that wanted a core in the minute before
  std::map<std::string, std::string> devices;   ///< by contender, where a backend here provides it
  std::map<std::string, std::string> software;  ///< versions by name
  std::optional<Limits> limits;
  std::map<std::string, DeviceLimits> device_limits;  ///< by device, of those with memory of their own
};

enum class WithLimits { no, yes };
/// This one, as far as it can be known. Measuring its limits takes half a second, those of devices some more:
/// of those that contenders are named by, for operations of these dtypes.
Machine this_machine(std::span<const std::string> contenders, WithLimits limits = WithLimits::yes,
                     const std::vector<DType>& dtypes = {});

}  // namespace weft::lab
