#pragma once
#include "conformance/numbers.h"
#include "conformance/seam/usual.h"
#include "seam/sequence.h"

namespace weft::conformance {

/// Steps over some buffers of one size, whose values are known at each moment: what a sequence is made of.
/// Buffers are numbered; the first `bound` of them are bindings.
class Script {
 public:
  static constexpr int64_t kElements = 5'000;
  /// `op` is "add", "sub" or "maximum"; "" copies buffer a to buffer `to`.
  struct Step {
    const char* op;
    size_t a, b, to;
  };
  using Values = std::vector<double>;  // of each buffer, whose elements are all equal

  Script(Rig& rig, size_t buffers, size_t bound, std::vector<Step> steps);

  /// Everything that the steps need must be in `rig`'s queue, or before it, when they run.
  Result<std::unique_ptr<seam::Sequence>> record(uint32_t& refused);
  /// New memory for the bindings, holding these values; the fixed buffers keep what they hold.
  std::vector<std::unique_ptr<Rig::Operand>> memory(const Values& values);
  static std::vector<void*> handles(const std::vector<std::unique_ptr<Rig::Operand>>& memory);
  void fill_fixed(const Values& values);  ///< of all buffers; those of the bindings are left out

  /// What the buffers hold after the steps have run in their order.
  Values after(Values values) const;
  /// What is wrong in the bindings' memory, or in the fixed buffers.
  Finding wrong(const std::vector<std::unique_ptr<Rig::Operand>>& memory, const Values& wanted);
  Finding wrong_fixed(const Values& wanted);
  size_t bound() const { return bound_; }

 private:
  struct Described;
  Finding differs_from(const Rig::Operand& o, double wanted, size_t number);
  seam::PreparedKernel& plan_of(const char* op);
  bool waits(size_t later, size_t earlier) const;

  Rig& rig_;
  size_t bound_;
  std::vector<Step> steps_;
  std::vector<std::unique_ptr<Rig::Operand>> fixed_;  // null for bindings
  std::map<std::string, seam::PreparedPtr> plans_;
  std::map<std::string, std::unique_ptr<Rig::Operand>> workspaces_;  // of each step its own
};

/// Steps without a pattern, whose order matters nearly everywhere.
std::vector<Script::Step> any_steps(Random& random, size_t buffers, size_t n);

}  // namespace weft::conformance
