#pragma once
#include <string>
#include <vector>

#include "ir/op.h"
#include "program/program.h"

// A program as calls of public functions (weft/ops.h), which source.cpp prints.
namespace weft::cli::source {

using Id = int32_t;
inline constexpr Id kNone = -1;  // an operand left out

/// What an operand may be. A state and what is written over it are one value, as they are one Tensor.
struct Value {
  enum class Kind : uint8_t { made, input, stored, number } kind = Kind::made;
  std::string name;   // of an input, weight or state
  double number = 0;  // a number beside a tensor, and its dtype
  DType dtype = DType::f32;
  size_t line = 0;  // what made it, and as which of its results
  size_t result = 0;
};

/// One call of the function `op`.
struct Line {
  const ir::OpDef* op = nullptr;
  std::vector<AttrValue> attrs;  // in the order of the op's fields
  std::vector<Id> inputs;
  std::vector<Id> outputs;  // those that the function returns
  std::string where;        // name of the node
  bool updates() const { return op->updates[0].output >= 0; }
};

struct Listing {
  std::vector<Value> values;
  std::vector<Line> lines;
  std::vector<Id> inputs, outputs;  // in the order of the program's

  const Value& at(Id id) const { return values[static_cast<size_t>(id)]; }
};

/// The calls of a program that compiler::read_file has accepted. A fusion is listed as the calls of its body,
/// and so is an op of which a result is read that its function does not return.
Result<Listing> list(const program::CompiledProgram& program);

}  // namespace weft::cli::source
