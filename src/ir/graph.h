#pragma once
#include <deque>

#include "ir/builder.h"

namespace weft::ir {

struct Node {
  const OpDef* op = nullptr;
  std::vector<AttrValue> attrs;
  std::vector<int32_t> inputs;  // value ids, -1 where absent
  std::vector<int32_t> outputs;
  std::string where;  // scope and op: "mlp.hidden1.matmul"
  std::string from;   // the line of the user's program, where that is known: "model.py:12"
  uint32_t run = 0;   // of a recomputed part: its nodes are not merged with others
};

/// A list of nodes in execution order over numbered, typed values. Also the Builder that records them.
class Graph final : public Builder {
 public:
  struct State {
    std::string name;
    int32_t before = -1, after = -1;
  };
  struct Named {
    std::string name;
    int32_t value = -1;
  };

  Value input(std::string name, TensorType type);
  /// A state; its value at the start of the graph. Set `after` once the graph is built.
  Value state(std::string name, TensorType type);
  /// A constant whose bytes live outside, under this name.
  Value weight(std::string name, TensorType type);
  void output(std::string name, Value v) { outputs.push_back({std::move(name), v.id()}); }

  const TensorType& type(Value v) const override { return types[static_cast<size_t>(v.id())]; }
  Value value(int32_t id) { return {this, id}; }

  std::deque<TensorType> types;  // by value id; references to them stay true while it grows
  std::vector<Node> nodes;
  std::vector<Named> inputs, outputs, weights;
  std::vector<State> states;
  std::string scope;  // put before `where` of the nodes that are recorded now
  std::string from;   // of the nodes that are recorded now, as is `run`
  uint32_t run = 0;

 protected:
  ValueList emit(const OpDef& op, Values inputs, std::vector<AttrValue> attrs,
                 std::vector<TensorType> types) override;
  Value placeholder(const TensorType& type) override;

 private:
  Value add_value(TensorType type);
};

/// Values are defined once and before use, types are what the shape rules say, states end with their own
/// type.
Status verify(const Graph& graph);
/// One node a line: `%5: f32[4, 8] = softmax(%4) {axis=-1}`. parse(print(g)) prints the same text.
std::string print(const Graph& graph);
Result<Graph> parse(std::string_view text);

}  // namespace weft::ir
