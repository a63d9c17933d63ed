#pragma once
#include <optional>

#include "lab/calls.h"

namespace weft::lab {

/// The first call of a program that was outside its bound.
struct ShadowFinding {
  size_t call = 0;
  std::string what;                  ///< the call, its results and operands, with their types
  std::vector<std::string> kernels;  ///< that ran it
  std::string result;                ///< which result, and by how much: element, got, want, bound
  std::string oracle;                ///< what the oracle backend said there
};

struct ShadowReport {
  size_t calls = 0;   ///< that were run twice
  size_t judged = 0;  ///< of them: those whose results differ by more than a rounding, and were bounded
  std::optional<ShadowFinding> first;
  /// Set if every call is right alone but the whole program gave another result: then its memory plan is
  /// wrong, or a kernel is not reproducible.
  std::string whole;
  bool ok() const { return !first && whole.empty(); }
};

/// Runs every call of a program twice: by `config` and, on the same operands, on `oracle`. Results that
/// differ by more than a rounding are compared with the derived bound of their call. Ends at the first one
/// outside. `whole_run` is the result of the whole program.
Result<ShadowReport> shadow(const program::CompiledProgram& program,
                            std::span<const runtime::HostTensor> inputs, const Config& config,
                            const std::string& oracle, const Policy& policy,
                            std::span<const runtime::HostTensor> whole_run);

}  // namespace weft::lab
