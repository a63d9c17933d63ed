#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>

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
};

enum class WithLimits { no, yes };
/// This one, as far as it can be known. Measuring its limits takes half a second.
Machine this_machine(std::span<const std::string> contenders, WithLimits limits = WithLimits::yes);

}  // namespace weft::lab
