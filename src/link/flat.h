#pragma once
#include <memory>
#include <string>
#include <vector>

#include "link/schedule.h"

// The linker's intermediate form: every call has a kernel, and no value has memory yet.
namespace weft::link {

using Ids = std::vector<int32_t>;

/// A value of the program, or one inside a body that was opened.
struct FlatValue {
  seam::ConcreteType type;
  int32_t state = -1, weight = -1;  ///< index of the state or weight
  int32_t over = -1;                ///< the value whose memory this one overwrites
  int32_t view_of = -1;             ///< the value that this one is a view of
  uint64_t view_offset = 0;         ///< bytes
  bool overwritten = false;         ///< by an update in place, now or later
};

/// One call with its kernel, or a copy of its operand to its result where `prepared` is null.
struct FlatCall {
  std::shared_ptr<seam::PreparedKernel> prepared;
  uint32_t device = 0;
  Ids inputs, outputs;      ///< values; -1 where an operand is absent
  std::string where, from;  ///< as in program::KernelCall
  uint64_t workspace = 0;   ///< least bytes, where more than the kernel asks for
  size_t choice = 0;        ///< of FlatProgram::choices; of a launch
  int32_t onto = -1;        ///< the value that its result is added to, in that value's memory
};

/// Values are numbered as in the program; those of opened bodies come after.
struct FlatProgram {
  std::vector<FlatValue> values;
  std::vector<FlatCall> calls;
  std::vector<Choice> choices;
};

}  // namespace weft::link
