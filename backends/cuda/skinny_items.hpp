#pragma once
#include "skinny.hpp"

// What kernels for few rows are given, and what they do with the sums of products.
namespace weft::cuda::skinny {

constexpr int kMostItems = 8;  // of a launch: a kernel's arguments take at most 4 KB

/// A part of a call, as a kernel needs it.
struct Item {
  const void* x;
  const void* weights[kMostProducts];
  const void* operands[kMostOperands];
  void* results[kMostResults];
  ProductStep steps[kMostSteps];
  Format operand_formats[kMostOperands], result_formats[kMostResults];
  uint8_t result_steps[kMostResults];
  uint8_t products, n_operands, n_results, n_steps;
  uint8_t by_column;  // bit a: operand a has an element for each column, not for each element of the result
  bool aligned;       // x and weights, and the length of their rows
  bool normed;        // x is that of the norm, which is still to be normalized
  int rows, n, k;
};
struct Items {
  Item all[kMostItems];
  int first_blocks[kMostItems + 1];
  int n;
  bool early;  // weights are constant
  bool has_norm;
  SkinnyNorm norm;
};
static_assert(sizeof(Items) <= 4000);

struct alignas(16) Bits16 {
  uint32_t of[4];
};

__device__ inline float loaded(const void* from, Format format, int64_t i) {
  switch (format) {
    case Format::f16: return widened(static_cast<const f16*>(from)[i]);
    case Format::bf16: return widened(static_cast<const bf16*>(from)[i]);
    default: return static_cast<const float*>(from)[i];
  }
}
__device__ inline void stored(void* to, Format format, int64_t i, float x) {
  switch (format) {
    case Format::f16: static_cast<f16*>(to)[i] = narrowed<f16>(x); break;
    case Format::bf16: static_cast<bf16*>(to)[i] = narrowed<bf16>(x); break;
    default: static_cast<float*>(to)[i] = x;
  }
}
__device__ inline float rounded(float x, Format format) {
  switch (format) {
    case Format::f16: return widened(narrowed<f16>(x));
    case Format::bf16: return widened(narrowed<bf16>(x));
    default: return x;
  }
}

__device__ inline float computed(StepCode code, float a, float b) {
  switch (code) {
    case StepCode::add: return a + b;
    case StepCode::subtract: return a - b;
    case StepCode::multiply: return a * b;
    case StepCode::divide: return a / b;
    case StepCode::smaller: return a != a || a < b ? a : b;
    case StepCode::larger: return a != a || a > b ? a : b;
    case StepCode::exponential: return expf(a);
    case StepCode::tangent: return tanhf(a);
    case StepCode::error_function: return erff(a);
    case StepCode::root: return sqrtf(a);
    default: return a;
  }
}

/// Elements of an item's operands, which are loaded before they are needed.
struct Operands {
  float of[kMostOperands];

  __device__ Operands() = default;
  __device__ Operands(const Item& item, int row, int column) {
#pragma unroll
    for (int a = 0; a < kMostOperands; ++a)
      if (a < item.n_operands)
        of[a] = loaded(item.operands[a], item.operand_formats[a],
                       item.by_column >> a & 1 ? column : int64_t{row} * item.n + column);
  }
};

/// The steps of one element, whose sums are `products`.
__device__ inline void run_steps(const Item& item, const float* products, const Operands& operands, int row,
                                 int column) {
  float values[kMostSteps], last = 0;  // most steps need the one before
  ProductStep next = item.steps[0];
  for (int i = 0; i < item.n_steps; ++i) {
    const ProductStep s = next;
    if (i + 1 < kMostSteps) next = item.steps[i + 1];
    const auto value = [&](int of) { return of + 1 == i ? last : values[of]; };
    float v;
    switch (s.code) {
      case StepCode::product: v = products[s.a]; break;
      case StepCode::element:
      case StepCode::column: v = operands.of[s.a]; break;
      case StepCode::number: v = s.number; break;
      default: v = computed(s.code, value(s.a), value(s.b));
    }
    values[i] = last = rounded(v, s.rounded_to);
  }
  const int64_t at = int64_t{row} * item.n + column;
  for (int i = 0; i < item.n_results; ++i)
    stored(item.results[i], item.result_formats[i], at, values[item.result_steps[i]]);
}

}  // namespace weft::cuda::skinny
