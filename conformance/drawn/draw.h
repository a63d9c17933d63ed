#pragma once
#include "conformance/drawn/lie.h"
#include "conformance/numbers.h"

namespace weft::conformance {

/// Draws lies about one backend's kernels: fault x kernel x occasion.
class Drawing {
 public:
  explicit Drawing(const std::string& backend);
  /// Depends on `random` and the backend's kernels alone. The calls that a lie strikes are drawn from the
  /// suite's own cases, so that there are some; whether the fault is observable is not known here.
  Lie draw(Random& random);

 private:
  /// A call that a case makes: its first result.
  struct Call {
    int64_t elements, rows;
    DType dtype;
  };
  struct Kernel {
    std::string id;
    const ir::OpDef* op;
    bool alone;  ///< no other kernel of its op is there, and no body to run instead
  };
  const std::vector<Call>& calls_of(const ir::OpDef& op);
  When draw_when(Random& random, const ir::OpDef& op, const Flaw& flaw);

  std::vector<Kernel> kernels_;
  std::map<const ir::OpDef*, std::vector<Call>> calls_;
};

}  // namespace weft::conformance
