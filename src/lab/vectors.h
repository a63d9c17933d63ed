#pragma once
#include "lab/calls.h"

// The tests that a program file carries: made where it is compiled, run where it is used.
namespace weft::lab {

/// A test of the program on these inputs: the truth, and the noise bound of the whole graph.
Result<program::TestVector> make_test(const program::CompiledProgram& program,
                                      std::span<const runtime::HostTensor> inputs);

/// What a test would cost, in additions or products of the oracle, about.
Result<double> work_of_test(const program::CompiledProgram& program,
                            std::span<const runtime::HostTensor> inputs);
/// A test that costs more is made only if asked for: this takes about a second.
inline constexpr double kMostTestWork = 5e6;

/// What became of one test.
struct Verified {
  size_t test = 0;
  std::string wrong;          ///< the first result outside its bound; or why it did not run
  double worst = 0;           ///< the largest error, in units of its bound
  std::vector<Symbol> sizes;  ///< min and max are the size
};
/// Runs each test of the program on `backend`, from the first values of its states.
Result<std::vector<Verified>> run_tests(const program::CompiledProgram& program, const std::string& backend,
                                        const Policy& policy);

}  // namespace weft::lab
