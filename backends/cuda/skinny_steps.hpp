#pragma once
#include "skinny.hpp"

// The elementwise steps after products of few rows: what is computed from sums, and where it is written.
namespace weft::cuda::skinny {

/// A part of a call, as a kernel needs it.
struct Item {
  const void* x;
  const void* weights[kMostProducts];
  const void* operands[kMostOperands];
  void* results[kMostResults];
  ProductStep steps[kMostSteps];
  Format operand_formats[kMostOperands], result_formats[kMostResults];
  uint8_t result_steps[kMostResults];
  uint8_t products, n_results, n_steps, leaves;
  uint8_t chunks, split;  // of one row: chunks of a warp in it, and warps that share a row of the weights
  bool aligned;           // x and weights, and the length of their rows
  bool normed;            // x is that of the norm, which is still to be normalized
  int rows, n, k;
};
/// f(T{}), where T is the type of such elements.
template <class F>
__device__ void with_format(Format format, F f) {
  switch (format) {
    case Format::f16: return f(f16{});
    case Format::bf16: return f(bf16{});
    default: return f(float{});
  }
}
__device__ inline float loaded(const void* from, Format format, int64_t i) {
  float x = 0;
  with_format(format, [&]<class T>(T) { x = widened(static_cast<const T*>(from)[i]); });
  return x;
}
__device__ inline void stored(void* to, Format format, int64_t i, float x) {
  with_format(format, [&]<class T>(T) { static_cast<T*>(to)[i] = narrowed<T>(x); });
}
__device__ inline float rounded(float x, Format format) {
  with_format(format, [&]<class T>(T) { x = widened(narrowed<T>(x)); });
  return x;
}

/// f(g), where g computes this from two numbers.
template <class F>
__device__ void with_code(StepCode code, F f) {
  switch (code) {
    case StepCode::add: return f([](float a, float b) { return a + b; });
    case StepCode::subtract: return f([](float a, float b) { return a - b; });
    case StepCode::multiply: return f([](float a, float b) { return a * b; });
    case StepCode::divide: return f([](float a, float b) { return a / b; });
    case StepCode::smaller: return f([](float a, float b) { return a != a || a < b ? a : b; });
    case StepCode::larger: return f([](float a, float b) { return a != a || a > b ? a : b; });
    case StepCode::exponential: return f([](float a, float) { return expf(a); });
    case StepCode::tangent: return f([](float a, float) { return tanhf(a); });
    case StepCode::error_function: return f([](float a, float) { return erff(a); });
    case StepCode::root: return f([](float a, float) { return sqrtf(a); });
    case StepCode::logistic: return f([](float a, float) { return 1 / (expf(-a) + 1); });
    default: return f([](float a, float) { return a; });
  }
}
__device__ inline float computed(StepCode code, float a, float b) {
  float x = a;
  with_code(code, [&](auto of) { x = of(a, b); });
  return x;
}

/// An element of the results, for which a thread runs the steps.
struct StepElement {
  bool there;
  int row, column;
  float products[kMostProducts];
};

/// The steps of some elements: one step of all of them, then the next, since finding out what a step is takes
/// longer than computing it. values(i, e): a place for the result of step i of element e.
template <int kEach, class Values>
__device__ void run_steps(const Item& item, const StepElement (&of)[kEach], Values values) {
  const auto at = [&](int e) { return int64_t{of[e].row} * item.n + of[e].column; };
  for (int i = 0; i < item.n_steps; ++i) {
    const ProductStep s = item.steps[i];
    float x[kEach];
    const auto each = [&](auto f) {
#pragma unroll
      for (int e = 0; e < kEach; ++e) x[e] = f(e);
    };
    const auto load_each = [&](auto index) {
      with_format(item.operand_formats[s.a], [&]<class T>(T) {
        each([&](int e) {
          return of[e].there ? widened(static_cast<const T*>(item.operands[s.a])[index(e)]) : 0.0f;
        });
      });
    };
    switch (s.code) {
      case StepCode::product: each([&](int e) { return s.a ? of[e].products[1] : of[e].products[0]; }); break;
      case StepCode::element: load_each(at); break;
      case StepCode::column: load_each([&](int e) { return int64_t{of[e].column}; }); break;
      case StepCode::number: each([&](int) { return s.number; }); break;
      default:
        with_code(s.code, [&](auto f) { each([&](int e) { return f(values(s.a, e), values(s.b, e)); }); });
    }
    with_format(s.rounded_to, [&]<class T>(T) { each([&](int e) { return widened(narrowed<T>(x[e])); }); });
#pragma unroll
    for (int e = 0; e < kEach; ++e) values(i, e) = x[e];
  }
  for (int r = 0; r < item.n_results; ++r)
    with_format(item.result_formats[r], [&]<class T>(T) {
#pragma unroll
      for (int e = 0; e < kEach; ++e)
        if (of[e].there)
          static_cast<T*>(item.results[r])[at(e)] = narrowed<T>(values(item.result_steps[r], e));
    });
}

}  // namespace weft::cuda::skinny
