#pragma once
#include "base/element.h"
#include "eager/describe.h"
#include "ir/builder.h"
#include "runtime/session.h"
#include "seam/prepared_kernel.h"
#include "seam/registry.h"
#include "weft/tensor.h"

// One call on one backend through the seam, below eager: the test chooses the outputs' previous contents.
namespace weft::conformance {

using runtime::HostTensor;

/// `values` over and over.
HostTensor array(IntList shape, const std::vector<double>& values, DType dtype = DType::f32);
/// first, first + 1, ...: sums and products of these are exact, so every backend gives equal bits.
HostTensor counting(IntList shape, double first = 1, DType dtype = DType::f32);
std::vector<double> numbers(const HostTensor& t);

struct Ask {
  std::string op;
  std::vector<HostTensor> inputs;
  std::vector<Attr> attrs = {};
  uint64_t accumulate = 0;
  uint64_t absent = 0;     ///< bit i: input i is optional, and not given
  uint64_t constants = 0;  ///< bit i: input i holds the same bytes in every launch
  bool one_size = false;   ///< of constants: the calls that read them have the same sizes in every run
  uint8_t determinism = WEFT_DETERMINISM_ANY;  ///< the least level
  /// What each output holds before the launch: these over and over.
  std::vector<double> before = {std::numeric_limits<double>::quiet_NaN()};
};

Result<seam::CallPtr> describe(const Ask& ask);

/// A device with the test's own queue.
class Rig {
 public:
  explicit Rig(const std::string& backend);
  explicit Rig(seam::Device& d);

  struct Operand {
    seam::BufferRef buffer;
    seam::ConcreteType type;
    weft_tensor c;
  };
  /// With an offset, it is that far from the beginning of its memory, among other numbers.
  Result<std::unique_ptr<Operand>> upload(const HostTensor& t, uint64_t offset = 0);
  Result<HostTensor> download(const Operand& o);
  /// Memory for a tensor, which holds what it held.
  Result<std::unique_ptr<Operand>> room(const seam::ConcreteType& type, uint64_t bytes, uint64_t offset = 0);
  /// The workspace of a launch, filled with 255 unless `fresh`; null if it needs none.
  Result<std::unique_ptr<Operand>> workspace(const weft_plan& plan, uint64_t offset = 0);

  /// A refusal is a Status of code unsupported with every reason.
  Result<seam::PreparedPtr> plan(const seam::CallPtr& call);
  /// By this kernel alone; unsupported, with its reason, if it refuses.
  Result<seam::PreparedPtr> plan(const seam::CallPtr& call, const weft_kernel& kernel) {
    return seam::prepare_with(device, kernel, call);
  }

  /// The arguments of one launch. Must live until the queue has completed it.
  struct Placed {
    std::vector<std::unique_ptr<Operand>> in, out;  ///< `out`: those that are no operand's update
    std::vector<std::unique_ptr<Operand>> packed;
    std::unique_ptr<Operand> workspace;
    std::vector<const weft_tensor*> c_in, c_out;
    std::vector<const Operand*> results;
  };
  /// Outputs hold `ask.before` when the launch begins, unless `fresh`. The copies are in the queue.
  Result<Placed> place(const seam::PreparedKernel& plan, const Ask& ask, uint64_t offset = 0);
  /// Constants are read as the plan wants them packed, from now on. Waits for them.
  Status pack(const seam::PreparedKernel& plan, Placed& placed);
  Status enqueue(seam::PreparedKernel& plan, const Placed& placed) { return enqueue(plan, placed, *queue); }
  Status enqueue(seam::PreparedKernel& plan, const Placed& placed, seam::Queue& on);

  struct Run {
    std::vector<HostTensor> outputs, inputs_after;
  };
  Result<Run> read(const Placed& placed);
  /// All of it: uploads, packs, launches, waits and reads.
  Result<Run> launch(seam::PreparedKernel& plan, const Ask& ask, uint64_t offset = 0);
  Result<Run> run(const Ask& ask) {
    WEFT_TRY(const auto call, describe(ask));
    WEFT_TRY(const auto chosen, plan(call));
    return launch(*chosen, ask);
  }

  seam::Device& device;
  std::unique_ptr<seam::Queue> queue;
  /// Outputs and workspaces are left as they were allocated.
  bool fresh = false;
};

}  // namespace weft::conformance
