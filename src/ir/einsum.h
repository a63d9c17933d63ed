#pragma once
#include "ir/contraction.h"
#include "ir/value.h"
#include "weft/small_vector.h"

// An einsum equation with its operands' shapes, as labels.
namespace weft::ir {

using Labels = SmallVector<int, 8>;

struct Einsum {
  /// A label for each axis; the same one twice means the diagonal. kBroadcast: an axis of size 1 that meets a
  /// longer one under its letter.
  std::vector<Labels> operands;
  Labels result;
  std::vector<Dim> sizes;  ///< by label
  static constexpr int kBroadcast = -1;

  Contraction contraction() const;
};

/// "ij,jk->ik", "b...i,b...i", "ii". Letters name axes, "..." stands for all others, from the right; without
/// "->" the result has the axes of "..." and then the letters that stand once, in alphabetical order.
Result<Einsum> parse_einsum(std::string_view equation, std::span<const Shape> operands);

/// One step of a contraction: the product of two values by an equation of its own makes the next value.
struct EinsumStep {
  size_t a, b;
  std::string equation;
};
/// Two operands or more, two at a time. Operands are values 0 to n - 1, step i makes value n + i.
std::vector<EinsumStep> pairwise(const Einsum& e);

}  // namespace weft::ir
