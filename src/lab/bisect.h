#pragma once
#include <optional>

#include "lab/calls.h"

namespace weft::lab {

/// Compares two configurations of a program and finds the first choice at which they differ.
struct Bisection {
  bool a_right = false, b_right = false;  ///< are its outputs within the noise bound (or, where bits are
                                          ///< asked for, those of a)?
  std::string a_reason, b_reason;         ///< why not
  struct Culprit {
    size_t call = 0;
    std::string what;                               ///< the call, its results and operands
    std::string kind;                               ///< "backend", "fusion" or "kernel"
    std::vector<std::string> a_kernels, b_kernels;  ///< that run it
    std::string a_verdict, b_verdict;               ///< this call alone against its derived bound
  };
  std::optional<Culprit> culprit;  ///< none where both are right, or both are wrong
  size_t trials = 0;               ///< runs of the program, or of a part
};

/// Runs the calls up to some k by `a`, the others by `b`, and finds the k at which the outputs become wrong.
/// Right means within the noise bound of the whole graph, or, if `same_bits`, equal to the bits of `a`.
Result<Bisection> bisect(const program::CompiledProgram& program, std::span<const runtime::HostTensor> inputs,
                         const Config& a, const Config& b, const Policy& policy, bool same_bits);

}  // namespace weft::lab
