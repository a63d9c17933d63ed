#pragma once
#include <span>

#include "program/program.h"

// Definitions, reads and overwrites of the values of a list of calls.
namespace weft::program {

/// "call 3 matmul (hidden1.matmul)", for messages.
std::string call_text(size_t index, const KernelCall& call);

/// What the verifier needs to know of a body at each call of it.
struct RegionUse {
  std::vector<bool> reads;  // by input: the body touches it
  std::vector<ValueId>
      becomes;         // by input: the value its buffer holds in the end, or kAbsent if it is not overwritten
  uint32_t depth = 1;  // bodies within one another, this one too
  uint64_t steps = 0;  // primitive calls, with those of the bodies inside
};

/// Follows one list of calls, in order. Each check returns an error without a place; the caller knows it.
class Flow {
 public:
  explicit Flow(std::span<const TensorSpec> values) : values_(values), facts_(values.size()) {}

  /// `id` has a value from here on. A constant one may never be overwritten.
  Status define(ValueId id, bool constant = false);
  /// `id` is in range, has a value, and its buffer still holds it.
  Status read(ValueId id);
  /// Reads, definitions and updates of one call.
  Status call(const KernelCall& call);
  /// Every value was defined.
  Status finish() const;

  /// The last value in the buffer of `id`: itself, or where its chain of updates leads.
  ValueId last(ValueId id) const;
  bool was_read(ValueId id) const { return facts_[static_cast<size_t>(id)].read; }

 private:
  struct Fact {
    bool defined = false, constant = false, read = false;
    bool over = false;       // it took the buffer of another value
    ValueId next = kAbsent;  // the value that took its buffer
  };
  bool in_range(ValueId id) const { return id >= 0 && static_cast<size_t>(id) < facts_.size(); }
  Fact& fact(ValueId id) { return facts_[static_cast<size_t>(id)]; }
  const Fact& fact(ValueId id) const { return facts_[static_cast<size_t>(id)]; }
  Status update(const KernelCall& call, const Update& u);

  std::span<const TensorSpec> values_;
  std::vector<Fact> facts_;
};

/// A region whose calls may have the regions `before` it as bodies: values in order, outputs there.
Result<RegionUse> check_region(const Region& region, std::span<const Region> before,
                               std::span<const RegionUse> uses);
/// A call of `region`: as many operands as the body has, of its types, and its updates declared.
Status check_region_call(const KernelCall& call, std::span<const TensorSpec> values, const Region& region,
                         const RegionUse& use);

}  // namespace weft::program
