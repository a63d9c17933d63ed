#pragma once
#include "conformance/cases.h"

namespace weft::ir {
struct OpDef;
}

// Operations as data: src/lab/operations/<op>.cpp defines `OperationFile <op>_operation()`, and the build
// lists the folder. Its includes must be cheap.
namespace weft::lab {

using conformance::constant;
using conformance::integers;
using conformance::normal;
using conformance::uniform;

/// A direction in which the results fall apart: block i of the results along an axis depends on block i of
/// some operands alone, and on the whole of the others. So the oracle can tell what a few rows should be,
/// where it would take minutes for all.
struct Rows {
  std::vector<int> operands;  ///< axis of each; -1: every row reads all of it
  int results;                ///< axis of the results; those of a lower rank are read whole
  /// Elements of a block along the axis of each operand; empty: one. Grouped heads: 4 of the queries to 1.
  std::vector<int64_t> operand_blocks = {};
  int64_t result_block = 1;
};

using Shapes = std::vector<conformance::Dims>;

/// An op's operands, without numbers, its attributes, and where its rows are.
struct Sized {
  std::vector<conformance::Input> inputs;
  std::vector<Attr> attrs = {};
  std::vector<Rows> rows = {};
  /// Elements of the dtype that are read or written, where operands and results hold more than a kernel has
  /// to touch; 0: all of them.
  int64_t touched = 0;
};

/// Sizes at which a model runs an op.
struct Size {
  const char* where;  ///< "GPT-2 124M, scores of 12 heads"
  Shapes shapes;      ///< as `OperationFile::shapes` says
  std::vector<Attr> attrs = {};
};

/// What can be compared of one op.
struct OperationFile {
  /// Which operands' shapes are sizes, with an axis for each dimension: {"a [m, k]", "b [k, n]"}.
  std::vector<const char*> shapes;
  /// The call at these sizes, which are as many and of the ranks that `shapes` says.
  Sized (*make)(const Shapes& shapes);
  /// The same in dtypes of integers, where operands want numbers of their own; null: `make`.
  Sized (*make_of_integers)(const Shapes& shapes) = nullptr;
  std::vector<Size> sizes;         ///< of real models; the attributes of the first go with given sizes
  std::vector<Shapes> sweep = {};  ///< from small to large, for plots of speed against size
  /// Rows of any call of the op, also of other ranks and attributes; null: those that `make` gives.
  std::vector<Rows> (*rows)(const std::vector<conformance::Input>& inputs,
                            const std::vector<Attr>& attrs) = nullptr;
  /// In which it makes sense. The first is the one that is compared where none is asked for.
  std::vector<DType> dtypes = {DType::f32, DType::f16, DType::bf16};
  const ir::OpDef* definition = nullptr;      ///< null: Weft's op of that name
  conformance::OpCases (*cases)() = nullptr;  ///< null: those of conformance
};

struct NamedOperationFile {
  const char* op;
  OperationFile (*file)();
};
/// The folder src/lab/operations, in order.
std::span<const NamedOperationFile> operation_files();

}  // namespace weft::lab
