#pragma once
#include "conformance/numbers.h"
#include "conformance/seam/usual.h"
#include "seam/sequence.h"

namespace weft::conformance {

/// The steps of a sequence, over buffers of one size whose values are known at each step. Buffers are
/// numbered; the first `bound` of them are bindings.
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

  /// Uploads for the steps are in `rig`'s queue; the steps must run in it or after it.
  Result<std::unique_ptr<seam::Sequence>> record(uint32_t& refused);
  /// New memory for the bindings with these values; fixed buffers keep their contents.
  std::vector<std::unique_ptr<Rig::Operand>> memory(const Values& values);
  static std::vector<void*> handles(const std::vector<std::unique_ptr<Rig::Operand>>& memory);
  void fill_fixed(const Values& values);  ///< of all buffers; those of the bindings are left out

  /// The values of the buffers after the steps have run in order.
  Values after(Values values) const;
  /// What is wrong in the bindings' memory or in the fixed buffers.
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

/// Random steps whose order matters nearly everywhere.
std::vector<Script::Step> any_steps(Random& random, size_t buffers, size_t n);

}  // namespace weft::conformance
