#pragma once
#include <atomic>

#include "eager/called_from.h"
#include "eager/tensor_impl.h"
#include "ir/op.h"

namespace weft::eager {

/// A tensor that the backward pass will read, and the version of its buffer: an update since is an error.
struct Saved {
  Tensor tensor;  // without its gradient's history, so that no cycle keeps a result alive
  uint32_t version = 0;
};

/// Where a gradient flows: a leaf, or a result of another node.
struct Edge {
  Tensor leaf;                     // set for a leaf
  std::shared_ptr<TapeNode> node;  // set otherwise; both empty: nothing wants this gradient
  uint32_t output = 0;
  explicit operator bool() const { return leaf || node; }
};

/// How to make the results of a node again, for one that keeps nothing but its operands. See recompute.cpp.
class Rerun {
 public:
  virtual ~Rerun() = default;
  /// On the tape, joined to the history of `inputs`.
  virtual std::vector<Tensor> run(const std::vector<Tensor>& inputs) = 0;
};

/// The gradient of a node that is no op's. See function.cpp.
class Gradient {
 public:
  virtual ~Gradient() = default;
  /// One for each operand, an empty tensor where there is none.
  virtual Result<std::vector<Tensor>> run(const TapeNode& node, const std::vector<Tensor>& gradients) = 0;
};

/// Who may read what a node saved: any number of passes that keep it, or one that frees it. Nobody waits:
/// the last reader frees, as that one may be a pass that keeps.
class Claim {
 public:
  /// False where another pass is to free it, or has.
  bool enter(bool to_free) {
    uint32_t now = state_.load(std::memory_order_acquire);
    do {
      if (now & kTaken) return false;
    } while (!state_.compare_exchange_weak(now, (now + 1) | (to_free ? kTaken : 0), std::memory_order_acq_rel,
                                           std::memory_order_acquire));
    return true;
  }
  /// True for the last reader of what was taken, who must free it.
  bool leave() { return state_.fetch_sub(1, std::memory_order_acq_rel) == (kTaken | 1); }
  /// Of one that was to free it, and failed: others may try.
  void give_back() { state_.fetch_sub(kTaken + 1, std::memory_order_acq_rel); }
  bool taken() const { return state_.load(std::memory_order_relaxed) & kTaken; }

 private:
  static constexpr uint32_t kTaken = 1u << 31;
  std::atomic<uint32_t> state_ = 0;  // readers, and kTaken
};

/// One recorded call.
struct TapeNode : std::enable_shared_from_this<TapeNode> {
  const ir::OpDef* op = nullptr;
  uint64_t sequence = 0;  // order of recording; backward runs it down
  std::vector<AttrValue> attrs;
  std::vector<Edge> edges;  // one per input
  std::vector<TensorType> in_types, out_types;
  uint32_t present = 0;              // bit i: operand i is there
  std::vector<Saved> in, out;        // empty tensors where the op's `saves` does not name them
  std::unique_ptr<Rerun> rerun;      // of a node that stands for many calls
  std::unique_ptr<Gradient> custom;  // of a node that stands for a user's function
  CalledFrom from = called_from();   // for errors, and for the nodes of its gradient in a trace
  Claim claim;                       // on `in`, `out`, `rerun` and `custom`
  void give_up();
  ~TapeNode();
};

/// Records a call whose results were just made, if any input requires a gradient. An error when the op has no
/// gradient although its result is a float: a gradient is never dropped in silence.
Status record(const ir::OpDef& op, std::span<const Tensor* const> inputs, std::span<const AttrValue> attrs,
              std::span<Tensor> outputs);
/// Keeps what a record() after an in-place update would see too late.
bool wants_record(std::span<const Tensor* const> inputs);

/// The next place in the order of recording.
uint64_t next_sequence();
/// What a node keeps of an operand or a result, and where the gradient of an operand goes.
Result<Saved> save(const Tensor& t);
Edge edge_to(const Tensor& t);
/// A saved tensor for the gradient rule, attached to its history again for second derivatives. An error where
/// it was overwritten since; `what` names it.
Result<Tensor> restored(const Saved& s, const TapeNode& node, const Edge& edge, const char* what);

/// With `keep`, the history can be gone back through again.
Status backward(const Tensor& root, const Tensor& seed, bool create_graph, bool keep);

}  // namespace weft::eager
