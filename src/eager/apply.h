#pragma once
#include "eager/tensor_impl.h"
#include "ir/op.h"
#include "weft/policy.h"

namespace weft::eager {

/// Calls an op on tensors: infers, records the tape, selects (through the cache of calls), launches. In a
/// trace it records a node instead. `attrs` are complete and in the order of the op's fields; null inputs are
/// absent. Fills one tensor per output of the op, also those that were updated in place. Raises Error.
void apply(const ir::OpDef& op, std::span<const Tensor* const> inputs, std::span<const AttrValue> attrs,
           std::span<Tensor> outputs);

/// The same for an op with one result.
inline Tensor apply_one(const ir::OpDef& op, std::span<const Tensor* const> inputs,
                        std::span<const AttrValue> attrs) {
  Tensor out;
  apply(op, inputs, attrs, {&out, 1});
  return out;
}

/// Misses and entries of this thread's cache of calls: for tests and benchmarks.
struct CacheStats {
  uint64_t misses = 0;
  uint64_t entries = 0;
};
CacheStats cache_stats();
/// Empties this thread's cache of calls; the next call of anything is a miss.
void clear_call_cache();

bool grad_enabled();
void set_grad_enabled(bool on);
/// While it lives, this thread records gradients or not.
class GradMode {
 public:
  explicit GradMode(bool on);
  ~GradMode();

 private:
  bool before_;
};

}  // namespace weft::eager
