#pragma once
#include <map>
#include <string>
#include <vector>

#include "weft/shape.h"

// The parts of a symbolic dimension.
namespace weft::detail {

// A sum of integer multiples of products of atoms. Products and atoms are kept sorted, so equal values have
// equal forms, and interning makes equal forms equal pointers.
using Monomial = std::vector<const DimExpr*>;  // sorted atoms, repeated for powers; empty = the constant term
using Polynomial = std::map<Monomial, int64_t>;

struct DimExpr {
  enum class Kind { symbol, floor_div, max, sum } kind;
  std::string name;  // symbol
  int64_t min = 0, max = 0;
  Dim a, b;  // floor_div: a / divisor; max: a, b
  int64_t divisor = 1;
  Polynomial terms;  // sum
  std::string text;
  std::string key;  // its identity: the text, with the bounds of each symbol

  static const DimExpr* of(Dim d) { return d.expr(); }
  static Dim wrap(const DimExpr* e) { return Dim(e); }
};

}  // namespace weft::detail
