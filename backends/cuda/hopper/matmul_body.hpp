#pragma once
#include <optional>

#include "weft/backend.hpp"

// Bodies of calls that are one product and what is computed from each of its elements.
namespace weft::cuda::hopper {

/// What becomes of p = a b + bias. `other` is a matrix of c's size.
enum class Ending : uint8_t {
  plain,       ///< c = p
  sum,         ///< c = p + other, which may be c
  gelu,        ///< c = p, second = gelu(c), by tanh
  gelu_slope,  ///< c = p times the slope of gelu at other, by tanh
};

/// Inputs and outputs of a call by their numbers; -1: there is none.
struct MatmulBody {
  int a = -1, b = -1, bias = -1, other = -1;
  bool transpose_b = false;
  Ending ending = Ending::plain;
  int c = -1, second = -1;
};

/// The body of a call as a product, or none.
std::optional<MatmulBody> matmul_body(const backend::OpCall&);

}  // namespace weft::cuda::hopper
