#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/op.h"
#include "weft/backend/views.hpp"

// The faults that a kernel may have. Each is planted in one kernel of a good backend.
namespace weft::conformance {

/// One launch of the lying kernel, on host memory, in the good kernel's terms. A fault finds the good
/// kernel's answer in the outputs and changes it.
class Strike {
 public:
  using Good = std::function<weft_code(const weft_launch*, weft_error*)>;
  /// Runs the good kernel, by `good`. `drawn` varies a fault from strike to strike, such as which element is
  /// wrong.
  Strike(const weft_launch* l, weft_error* e, uint64_t drawn, Good good);

  /// The good kernel on these operands.
  weft_code run(const weft_launch* l) { return good_(l, error); }

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
  /// The contents of an output before the launch, and the good kernel's answer.
  const std::vector<char>& before(uint32_t k) const { return before_[k]; }
  const std::vector<char>& right(uint32_t k) const { return right_[k]; }
  /// The answer of the kernel's previous launch, whatever its call was.
  std::span<const char> last;

  /// Runs the good kernel again, as if it had been prepared for `call`. False if it refuses that.
  bool answer_instead(const weft_call& call);
  /// Restores the contents of the outputs before the launch.
  void forget();
  /// Whether the fault is observable: another NaN, or another sign of a zero, is not.
  bool told() const;
  bool beyond_the_answer = false;  ///< the fault shows in something else than outputs

 private:
  Good good_;
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
  /// The ops that it affects; null: all.
  bool (*fits)(const ir::OpDef& op) = nullptr;
};
std::span<const Flaw> all_flaws();

}  // namespace weft::conformance
