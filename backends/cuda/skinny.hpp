#pragma once
#include <optional>
#include <string>
#include <vector>

#include "kernel.hpp"

// Products of few rows with weights, x wᵀ, and the elementwise steps after them: what decoding consists of.
// Reading the weights takes the time, so whatever else a body does is done where the sums are.
namespace weft::cuda {

inline constexpr int kSkinnyRows = 16;  ///< of x, at most
inline constexpr int kMostProducts = 2, kMostOperands = 4, kMostResults = 2, kMostSteps = 24;

/// Steps run in f32 on one element at a time. The numbers of a step's operands are those of earlier steps.
enum class StepCode : uint8_t {
  product,  ///< the sum of product a
  element,  ///< operand a, at the element's place
  column,   ///< operand a, at the element's column
  number,   ///< a constant
  add,
  subtract,
  multiply,
  divide,
  smaller,
  larger,
  exponential,
  tangent,  ///< tanh
  error_function,
  root,
  logistic,  ///< 1 / (1 + exp(-a))
  convert,   ///< nothing but the rounding
};
enum class Format : uint8_t { f32, f16, bf16 };

struct ProductStep {
  StepCode code;
  uint8_t a, b;
  Format rounded_to;
  float number;
};

/// One or two products of the same x and the steps that need them.
struct SkinnyPart {
  std::vector<int> weights;   ///< inputs of the call
  std::vector<int> operands;  ///< inputs of the call
  std::vector<Format> operand_formats;
  std::vector<ProductStep> steps;
  size_t leaves = 0;         ///< so many steps compute nothing: they are the first ones
  std::vector<int> results;  ///< outputs of the call
  std::vector<int> result_steps;
  std::vector<Format> result_formats;
};

/// A call that consists of such products. `n` and `k` are the sizes of each weight, [n, k].
struct SkinnyCall {
  int64_t rows = 0, n = 0, k = 0;
  int x = 0;                  ///< input of the call
  bool are_constant = false;  ///< all weights
  std::vector<SkinnyPart> parts;
};

/// rms_norm of few rows, which waits in its queue for products of its result: these read its rows where they
/// are, and normalize them on the way.
struct SkinnyNorm {
  const bf16 *x, *weight;  ///< without weights, null
  bf16* y;
  int rows, columns;
  float epsilon;
};
inline constexpr int kNormedRows = 2;  ///< at most
backend::Outcome collect_norm(const backend::Launch&, const SkinnyNorm&);

/// The call as products, or why it is none.
std::optional<SkinnyCall> skinny_call(const backend::OpCall&, std::string& why);

}  // namespace weft::cuda
