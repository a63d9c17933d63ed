#pragma once
#include "ir/builder.h"
#include "weft/shared/contraction.hpp"
#include "weft/small_vector.h"

// An einsum equation with its operands' shapes, as labels.
namespace weft::ir {

inline constexpr size_t kMostAxes = 8;  ///< that a tensor has
using Labels = SmallVector<int, kMostAxes>;

struct Einsum {
  /// A label for each axis; a repeated one means the diagonal. kBroadcast: an axis of size 1 whose letter has
  /// a longer axis elsewhere.
  std::vector<Labels> operands;
  Labels result;
  std::vector<Dim> sizes;  ///< by label
  static constexpr int kBroadcast = -1;

  shared::Contraction contraction() const;
};

/// "ij,jk->ik", "b...i,b...i", "ii". Letters name axes, "..." stands for all others, from the right; without
/// "->" the result has the axes of "..." and then the letters that stand once, in alphabetical order. A
/// result of more than kMostAxes axes is refused.
Result<Einsum> parse_einsum(std::string_view equation, std::span<const Shape> operands);
Result<Einsum> parse_einsum(std::string_view equation, Types in);

/// One step of a contraction: the product of two values by its own equation is the next value.
struct EinsumStep {
  size_t a, b;
  Labels result;         ///< of the next value; may have more labels than a tensor has axes
  std::string equation;  ///< says something only where every value has an axis for each label
};
/// Two operands or more, two at a time. Operands are values 0 to n - 1, step i makes value n + i.
std::vector<EinsumStep> pairwise(const Einsum& e);

/// Lowers a valid equation. One or two operands: repeated labels become diagonals, axes of only one operand
/// are summed, then a matmul, or a product and a sum (outer products, integers). More operands: an einsum for
/// each step. No value has more than 8 axes, whatever the equation.
Value lower_einsum(Builder& b, std::string_view equation, Values in);

}  // namespace weft::ir
