#pragma once
#include <set>

#include "compiler/module.h"

namespace weft::compiler {

/// A future call of the program: a node, or a chain.
struct Unit {
  size_t place;  ///< the number of its last node
  std::set<int32_t> inputs, outputs;
  const char* name;  ///< the op, or "elementwise"
  bool chain = false, elementwise = false;
  bool taken = false;  ///< a group has it
};

/// The calls that the program would have without groups, in order: what patterns make groups of.
class Units {
 public:
  static constexpr size_t kMostInputs = 24;  ///< of a group, as of a chain

  explicit Units(const Module& m);

  size_t size() const { return units_.size(); }
  const Unit& operator[](size_t u) const { return units_[u]; }
  /// A unit's last node, and the type of its first result.
  const ir::Node& node(size_t u) const { return g_.nodes[units_[u].place]; }
  const TensorType& result(size_t u) const { return g_.types[static_cast<size_t>(node(u).outputs[0])]; }
  /// The unit that makes a value; size() for none.
  size_t maker(int32_t value) const { return makers_[static_cast<size_t>(value)]; }
  /// All of them, in order, can run at the place of the last one: no other call needs a result before, and no
  /// operand is overwritten before.
  bool may_be_one(std::span<const size_t> members) const;

 private:
  void add_units(const Module& m);
  Unit unit_of(size_t place, std::span<const size_t> nodes, const char* name, bool chain) const;

  const ir::Graph& g_;
  std::vector<Unit> units_;
  std::vector<size_t> makers_;                // by value: the unit
  std::vector<std::vector<size_t>> readers_;  // by value: units
  std::vector<size_t> overwritten_at_;        // by value: the node
};

}  // namespace weft::compiler
