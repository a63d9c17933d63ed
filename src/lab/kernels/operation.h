#pragma once
#include <string>
#include <vector>

#include "conformance/seam/rig.h"
#include "lab/kernels/operation_file.h"

// What the lab compares kernels on: a call with sizes of real models, and where its rows are.
namespace weft::lab {

/// An operation at a size that a model runs it at.
struct Operation {
  std::string op;
  std::string where;  ///< "GPT-2 124M, scores of 12 heads"
  conformance::Case call;
  DType dtype = DType::f32;
  std::vector<Rows> rows;
  int64_t touched = 0;             ///< as Sized has it
  uint64_t constants = 0;          ///< bit i: operand i holds the same bytes in every launch
  bool one_size = false;           ///< the calls that read them have the same sizes in every run
  const ir::OpDef* own = nullptr;  ///< the lab's own definition; null: Weft's op
  conformance::OpCases (*own_cases)() = nullptr;  ///< null: those of conformance

  const ir::OpDef& definition() const;
  /// Errors: invalid_argument where there are none.
  Result<conformance::OpCases> cases() const;
  /// "softmax f32 [1536, 128], GPT-2 124M, scores of 12 heads".
  std::string label() const;
};

/// Which operations.
struct Choice {
  std::vector<std::string> ops = {};     ///< empty: all
  std::vector<std::string> dtypes = {};  ///< empty: the first that each op has
  std::vector<std::string> shapes =
      {};              ///< "1024x1024" or "128x768,768x3072", of one op; empty: those of models
  bool sweep = false;  ///< sizes from small to large instead
};

/// Those that are chosen, in the order of the folder. Errors: invalid_argument for an op that the lab has
/// not, a dtype that none of the chosen ops has, sizes that the op does not take, or no operation at all.
Result<std::vector<Operation>> operations_of(const Choice& choice);

/// An op that the lab itself defines, such as a chain of Weft's ops; null: none of that name.
const ir::OpDef* own_definition(std::string_view op);

/// Gives an operation that is none of the table the rows of its like there: of the same op, ranks and
/// attributes. It has none where the table has none, or where its sizes do not fit them. Errors: those of the
/// op's shape rule.
Status take_rows(Operation& operation);

/// Whether its results, of this shape, fall apart along all of its rows: sizes of the operands fit them.
bool falls_apart(const Operation& operation, const IntList& results);

/// The call as kernels are asked about it. Errors: those of the op's shape rule.
Result<seam::CallPtr> describe(const conformance::Ask& ask);

/// The call of these operands.
conformance::Ask ask_of(const Operation& operation, const std::vector<conformance::Array>& inputs);
/// The same, without numbers.
conformance::Ask ask_of(const Operation& operation);

/// How much a call reads and writes at least, and computes.
struct Work {
  double bytes = 0;  ///< of operands and results, each once, or of what is touched of them
  double flops = 0;  ///< a product and its sum are two; moving numbers is none
};
Result<Work> work_of(const Operation& operation);

}  // namespace weft::lab
