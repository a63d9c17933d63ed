#pragma once
#include <string>
#include <vector>

#include "conformance/cases.h"
#include "conformance/seam/rig.h"

// What the lab compares kernels on: a call with sizes of real models, and where its rows are.
namespace weft::lab {

/// An operation at a size that a model runs it at.
struct Operation {
  std::string op;
  std::string where;  ///< "GPT-2 124M, scores of 12 heads"
  conformance::Case call;
  DType dtype = DType::f32;
  /// Directions in which the results fall apart: element i of the results along such an axis depends on
  /// element i of the operands alone, or on the whole of one. So the oracle can tell what a few rows should
  /// be, where it would take minutes for all.
  struct Rows {
    std::vector<int> operands;  ///< axis of each; -1: every row reads all of it
    int results;
  };
  std::vector<Rows> rows;

  const ir::OpDef& definition() const;
  /// "softmax f32 [1536, 128], GPT-2 124M, scores of 12 heads".
  std::string label() const;
};

/// In the order of the table, each in f32.
const std::vector<Operation>& all_operations();

/// Those whose op is one of `ops`, or all where that is empty. Errors: invalid_argument for an op that the
/// table has not.
Result<std::vector<Operation>> operations_of(const std::vector<std::string>& ops);

/// The call of these operands.
conformance::Ask ask_of(const Operation& operation, const std::vector<conformance::Array>& inputs);
/// The same, without numbers.
conformance::Ask ask_of(const Operation& operation);

/// How much a call reads and writes at least, and computes.
struct Work {
  double bytes = 0;  ///< of operands and results, each once
  double flops = 0;  ///< a product and its sum are two; moving numbers is none
};
Result<Work> work_of(const Operation& operation);

}  // namespace weft::lab
