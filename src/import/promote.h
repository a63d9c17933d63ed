#pragma once
#include <optional>
#include <span>

#include "ir/builder.h"

// PyTorch's type promotion: what dtype an op computes in, whose operands have several.
namespace weft::importer {

/// A plain number among the operands, as a file's attribute holds it.
struct Number {
  enum class Kind { boolean, integer, real } kind = Kind::real;
  double value = 0;
  int64_t whole = 0;  ///< of an integer, where `value` may be rounded
};

/// A tensor or a number. Neither: an operand that was left out.
struct Operand {
  ir::Value value;
  std::optional<Number> number;
};

/// What a tensor of each of two dtypes promotes to; nothing where PyTorch has no such dtype, or Weft has not.
std::optional<DType> promote(DType a, DType b);

/// Tensors with axes count most, then those without, then numbers: a lower one changes the dtype only if its
/// kind (bool, integer, float) is a higher one.
std::optional<DType> result_type(std::span<const Operand> operands);

/// Does `dtype` hold the number without rounding?
bool is_exact(const Number& n, DType dtype);

/// The dtype of a float op on `dtype`: integers and bool become f32.
DType to_float(DType dtype);

}  // namespace weft::importer
