#pragma once
#include <functional>

#include "lab/calls.h"

// Finds the fastest kernel for each call of a program on this machine.
namespace weft::lab {

struct TuneOptions {
  double seconds = 1;          ///< of launches, for one call
  double oracle_seconds = 20;  ///< that working out the right answer of a call may take, about
  bool keep = true;            ///< writes what was found to the user's cache folder
};

/// A kernel on a call.
struct Timed {
  std::string kernel;
  std::string wrong;         ///< what is wrong with its result: it is not timed then
  uint64_t nanoseconds = 0;  ///< of a launch: the median
  uint64_t quarter = 0, three_quarters = 0;
  size_t samples = 0;
};

/// The result for a call and its duplicates.
struct TunedCall {
  size_t call = 0;             ///< the first of them
  size_t count = 1;            ///< how many they are
  std::string what;            ///< as describe_call says it
  std::vector<Timed> kernels;  ///< that accept it: first the one that is taken without measurements
  size_t fastest = 0;          ///< of `kernels`; 0 where no other is faster beyond doubt
  std::string judged;          ///< by what their results were checked
  std::string left_out;        ///< why nothing was measured
  double gain() const {
    return kernels.empty() || !kernels[fastest].nanoseconds
               ? 1
               : static_cast<double>(kernels[0].nanoseconds) /
                     static_cast<double>(kernels[fastest].nanoseconds);
  }
};

struct Tuning {
  std::vector<TunedCall> calls;
  size_t kept = 0;   ///< measurements that were written
  std::string file;  ///< their file in the cache folder
};

/// Measures, for each call of the program, every kernel that accepts it: the device's, and those of providers
/// that serve it. A result is checked before anything is timed: against the oracle, or on whole numbers
/// against the backend `reference` if the oracle would take too long. Kernels take turns, in a changing
/// order. A kernel other than the default choice is recorded only if its upper quartile is at least 3 percent
/// below the default's median. Calls `see` after each call.
Result<Tuning> tune(const program::CompiledProgram& program, std::span<const runtime::HostTensor> inputs,
                    const std::string& backend, const Policy& policy, const TuneOptions& options,
                    const std::function<void(const TunedCall&, size_t done, size_t of)>& see);

}  // namespace weft::lab
