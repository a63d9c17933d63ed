#pragma once
#include "compiler/compile.h"
#include "lab/calls.h"

namespace weft::lab {

/// A stage of a compilation, judged.
struct JudgedStage {
  std::string after;  ///< the pass; empty before the first one
  size_t calls = 0;   ///< of the program at this stage
  std::string wrong;  ///< the first number outside its bound; or why there is no program
};

/// Runs the program before the first pass and after each one, on the same inputs, and compares outputs and
/// final states with the noise bound of the graph as it was given. Kernels are those of the oracle, so what
/// differs is the pass's. After the first wrong stage, the others are not run.
class PassCheck {
 public:
  using Inputs = std::function<Result<std::vector<runtime::HostTensor>>(const program::CompiledProgram&)>;
  /// `inputs` makes those of the first stage, which all others share.
  explicit PassCheck(Inputs inputs) : inputs_(std::move(inputs)) {}

  /// For compiler::Watch. An error where the first program can't be run at all.
  Status see(const compiler::Stage& stage);
  const std::vector<JudgedStage>& stages() const { return stages_; }
  /// The wrong stage, or null.
  const JudgedStage* wrong() const;

 private:
  Status begin(const program::CompiledProgram& program);
  std::string judge(program::CompiledProgram program) const;

  Inputs inputs_;
  std::vector<runtime::HostTensor> in_;
  std::vector<conformance::Bounded> bounds_;
  std::vector<JudgedStage> stages_;
};

/// Runs the whole program once on `backend`: its outputs, then its final states.
Result<std::vector<runtime::HostTensor>> run_whole(const program::CompiledProgram& program,
                                                   std::span<const runtime::HostTensor> inputs,
                                                   const std::string& backend, const Policy& policy);
/// The truth of those, and how far from it a right run may be. `program` has no symbols.
Result<std::vector<conformance::Bounded>> bound_whole(const program::CompiledProgram& program,
                                                      std::span<const runtime::HostTensor> inputs);

}  // namespace weft::lab
