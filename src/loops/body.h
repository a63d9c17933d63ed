#pragma once
#include "loops/call.h"

namespace weft::loops {

/// A call as steps over numbered values: its region, or the call itself as the one step.
struct Body {
  explicit Body(const weft_call& c);

  struct Step {
    const weft_call* call;
    const uint32_t *in, *out;  ///< value numbers; UINT32_MAX for an absent operand
  };
  const weft_call& call;
  std::vector<const weft_type*> values;
  std::vector<Step> steps;
  std::vector<int32_t> maker;     ///< of each value: the step, or -1 for an input
  std::vector<uint32_t> outputs;  ///< value numbers

  Sizes sizes(uint32_t value) const { return max_shape(*values[value]); }
  DType type(uint32_t value) const { return dtype(*values[value]); }
  const Step* step_of(uint32_t value) const {
    return maker[value] < 0 ? nullptr : &steps[static_cast<size_t>(maker[value])];
  }

 private:
  std::vector<uint32_t> numbers_;  // of the one step
};

}  // namespace weft::loops
