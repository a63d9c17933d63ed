#pragma once
#include <functional>

#include "seam/call.h"
#include "seam/device.h"
#include "weft/policy.h"

namespace weft::seam {

/// Why a kernel was not selected.
struct Refusal {
  std::string kernel;
  std::string reason;
};
/// "kernel: reason; ..." of all of them.
std::string text(const std::vector<Refusal>& refusals);

/// A kernel chosen and prepared for one call; immutable but for its counter, which may miss concurrent
/// launches.
struct PreparedKernel {
  PreparedKernel(Device& d, const weft_kernel& k, CallPtr c) : device(d), kernel(k), call(std::move(c)) {}
  ~PreparedKernel();
  PreparedKernel(const PreparedKernel&) = delete;

  Device& device;
  const weft_kernel& kernel;
  CallPtr call;
  weft_plan plan{};
  std::string why;                                     // refusals of kernels asked before, for the ledger
  std::atomic<uint64_t> calls{0};                      // the ledger's count
  uint64_t cleared = 0;                                // the count at the last reset of the ledger
  PreparedKernel *before = nullptr, *after = nullptr;  // the ledger's list of live kernels

  void count() { calls.store(calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
};

/// Retires it to its device, which destroys it when no queue needs it any more.
struct PreparedEnd {
  void operator()(PreparedKernel* plan) const { plan->device.retire(plan); }
};
using PreparedPtr = std::unique_ptr<PreparedKernel, PreparedEnd>;

/// While it lives, kernels prepared by this thread may defer costly work, such as compiling source text, to
/// `finish`, which does it for all of them at once. Launches meanwhile need not compute: a dry run,
/// which the ledger counts and a session refuses.
class Together {
 public:
  static bool open();  ///< on this thread
  Together();
  ~Together();
  Together(const Together&) = delete;
  Status finish();

 private:
  bool open_ = true;
};

/// While it lives, `select` on this thread skips kernels that `refuse` returns a reason for: for tools that
/// bisect kernels, and tests that want another one. Cached calls are not affected.
class Without {
 public:
  using Refuse = std::function<std::string(const weft_kernel&)>;
  explicit Without(Refuse refuse);
  ~Without();
  Without(const Without&) = delete;

 private:
  Refuse refuse_;
  const Refuse* before_;  // of the enclosing scope, which is suspended
};

/// Asks the kernel that was measured to be the fastest here (seam/preference.h), then the device's kernels in
/// the order of its providers: first those for the op by name, then those that run a body. Null: all refused;
/// `refusals` says why, one line a kernel.
Result<PreparedPtr> select(Device& device, const CallPtr& call, std::vector<Refusal>* refusals);

/// Is the kernel asked about this call: for its op, for every call, or for every body?
bool is_for(const weft_kernel& kernel, const CallDesc& call);

/// Asks this kernel alone: a Status of code unsupported, with its reason, where it refuses.
Result<PreparedPtr> prepare_with(Device& device, const weft_kernel& kernel, const CallPtr& call);

/// "unsupported: softmax on cuda:0 for (...)", each refusal, the node as shown_node() has it, and a hint.
Status refused(const Device& device, const CallDesc& call, const std::vector<Refusal>& refusals,
               const Policy& policy, std::string_view node);

/// Enqueues the packing of constant `input`, which the plan wants, from row-major memory to that of the
/// packing. An error carries the kernel's id.
Status pack(const PreparedKernel& plan, uint32_t input, const weft_tensor& from, const weft_tensor& to,
            Queue& queue);

/// Enqueues one launch. An error carries the kernel's id.
Status launch(PreparedKernel& plan, Queue& queue, const weft_tensor* const* inputs,
              const weft_tensor* const* outputs, const weft_tensor* workspace);

}  // namespace weft::seam
