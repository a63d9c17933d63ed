#pragma once
#include <functional>
#include <memory>
#include <optional>

#include "weft/tensor.h"

namespace weft {

namespace ir {
class Graph;
}

/// An input of a traced function: its name, dtype and shape. A dimension may be a symbol.
struct InputSpec {
  std::string name;
  TensorType type;
};

/// A function of tensors that can be traced: it may touch parameters and states from outside, and update them
/// in place.
using TracedFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// What a trace recorded: the graph, and the outside tensors that it touched.
struct Traced {
  std::shared_ptr<ir::Graph> graph;
  std::vector<Tensor> states;   ///< in the order of the graph's states: updated in place
  std::vector<Tensor> weights;  ///< in the order of the graph's weights: only read
  std::string text() const;     ///< the graph, one node a line
};

/// Runs `function` once on placeholders and records every op, gradients included. No element is computed and
/// nothing outside changes: parameters keep their values and gradients. Raises if the function reads an
/// element.
Traced trace(const TracedFunction& function, const std::vector<InputSpec>& inputs);

/// A tensor with elements that are NaN or infinite.
struct NotFinite {
  std::string where;  ///< the name of a parameter or state, or the scope and op that computed it
  TensorType type;
  int64_t count = 0;   ///< elements of it that are not finite
  bool nan = false;    ///< some of them NaN
  bool given = false;  ///< it was given to the function, not computed by it
};
/// Runs `function` op by op and finds the first NaN; without one, the first infinity. Nothing outside
/// changes. A debugging tool: it checks every element.
std::optional<NotFinite> first_not_finite(const TracedFunction& function, const std::vector<Tensor>& inputs);

/// Names what is computed while it lives, nested in enclosing scopes: "block3.attn" prefixes the nodes of a
/// trace and the errors of ops.
class Scope {
 public:
  explicit Scope(std::string_view name);
  ~Scope();
  Scope(const Scope&) = delete;

 private:
  size_t length_, traced_length_ = std::string::npos;
};
/// `why` with the scopes that live on this thread in front, unless they are there: "block3.attn: matmul:
/// ...".
Status in_scope(Status why);

}  // namespace weft
