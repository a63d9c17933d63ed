#pragma once
#include <span>
#include <string>
#include <vector>

#include "ir/op.h"
#include "weft/backend/views.hpp"

// What can be wrong with a kernel: each fault is put into one kernel of a good backend.
namespace weft::conformance {

/// One launch of the kernel that lies, on host memory, in the good kernel's terms. A fault finds the good
/// kernel's answer in the outputs, and makes another of it.
class Strike {
 public:
  /// Runs the good kernel. `drawn` tells strikes of one fault apart, such as which element is wrong.
  Strike(const weft_launch* l, weft_error* e, uint64_t drawn);

  const weft_launch* launch;
  weft_error* error;
  uint64_t drawn;
  weft_code code;  ///< the good kernel's

  uint32_t n_inputs() const { return launch->plan->call->n_inputs; }
  uint32_t n_outputs() const { return launch->plan->call->n_outputs; }
  bool has_input(uint32_t i) const { return i < n_inputs() && launch->inputs[i]; }
  backend::TensorView in(uint32_t i) const { return backend::TensorView(launch->inputs[i]); }
  backend::TensorView out(uint32_t k) const { return backend::TensorView(launch->outputs[k]); }
  std::span<char> bytes(uint32_t k) const;
  /// What an output held before the launch, and what the good kernel answered.
  const std::vector<char>& before(uint32_t k) const { return before_[k]; }
  const std::vector<char>& right(uint32_t k) const { return right_[k]; }
  /// What the kernel's launch before this one answered, whatever it was asked.
  std::span<const char> last;

  /// The good kernel again, as if it had been asked `call` from the beginning. False where it refuses that.
  bool answer_instead(const weft_call& call);
  /// Puts back what the outputs held before.
  void forget();
  /// Can anybody tell? Not by a NaN in place of another one, nor by the sign of a zero.
  bool told() const;
  bool beyond_the_answer = false;  ///< the fault shows in something else than outputs

 private:
  std::vector<std::vector<char>> before_, right_;
};

struct Flaw {
  enum class Kind : uint8_t {
    answer,  ///< another answer, or none
    sum,     ///< another answer where += is asked, or where it is not
    memory,  ///< another place in memory
    refusal  ///< no, where the good kernel says yes
  };
  const char* name;
  const char* words;  ///< "every result is zero"
  Kind kind = Kind::answer;
  int64_t least = 1;               ///< elements of a result in which it can be seen
  weft_code (*lie)(Strike&) = {};  ///< none for a refusal
  /// Which ops it makes a difference to; null: all.
  bool (*fits)(const ir::OpDef& op) = nullptr;
};
std::span<const Flaw> all_flaws();

}  // namespace weft::conformance
