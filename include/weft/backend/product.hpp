#pragma once
#include "weft/backend.hpp"

// What libraries of matrix products are asked for: the calls of matmul and linear as one product, or a batch.
namespace weft::backend {

/// A product of row-major matrices, for each of a batch: y = a b (+ bias), or added to what is there.
struct Product {
  int64_t m = 0, n = 0, k = 0, batch = 1;
  int64_t a_stride = 0, b_stride = 0;  ///< elements between the matrices of the batch; 0: one for all
  bool transpose_a = false, transpose_b = false, bias = false, adds = false;
  DType dtype = DType::f32;
};

inline int64_t elements(std::span<const int64_t> sizes) {
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  return n;
}

namespace detail {
/// The batch of a matmul: matrices one after another on both sides, or one matrix for all on one of them.
inline Support batch_of(const OpCall& c, Product& p) {
  const auto leading = [](TypeView t) { return t.max().first(static_cast<size_t>(t.rank() - 2)); };
  const int64_t of_a = elements(leading(c.input(0))), of_b = elements(leading(c.input(1)));
  p.batch = elements(leading(c.output(0)));
  if ((of_a != p.batch && of_a != 1) || (of_b != p.batch && of_b != 1))
    return Support::no("its leading axes broadcast: {} and {}", c.input(0).max(), c.input(1).max());
  if (of_a == p.batch && of_b == 1 && !p.transpose_a) {
    p.m *= p.batch, p.batch = 1;  // rows of one product
    return Support::yes();
  }
  p.a_stride = of_a == 1 ? 0 : p.m * p.k, p.b_stride = of_b == 1 ? 0 : p.k * p.n;
  return Support::yes();
}
}  // namespace detail

/// Whether the result is of a float type, and all sizes are known and none of them 0.
inline Support plain_floats(const OpCall& c) {
  const DType t = c.output(0).dtype();
  if (t != DType::f64 && t != DType::f32 && t != DType::f16 && t != DType::bf16)
    return Support::no("computes in f64, f32, f16 and bf16, got {}", t);
  for (int64_t i = 0; i < c.n_inputs() + c.n_outputs(); ++i) {
    const bool in = i < c.n_inputs();
    const char* what = in ? "input" : "output";
    const TypeView t = in ? c.input(i) : c.output(i - c.n_inputs());
    for (int64_t d = 0; t.has() && d < t.rank(); ++d) {
      const Dim size = t.shape()[d];
      if (!size.known()) return Support::no("an {} has sizes from {} to {}", what, size.min(), size.max());
      if (size.max() == 0) return Support::no("an {} is empty", what);
    }
  }
  return Support::yes();
}

/// The product that a call of matmul or linear is.
inline Support product_of(const OpCall& c, Product& p) {
  if (auto s = plain_floats(c); !s) return s;
  p.dtype = c.output(0).dtype();
  p.adds = c.accumulates(0);
  const auto y = c.output(0).max(), a = c.input(0).max();
  p.n = y.back();
  if (c.op() == "linear") {
    p.transpose_b = true, p.bias = c.input(2).has();
    p.k = a.back(), p.m = elements(y) / p.n;
    return Support::yes();
  }
  p.transpose_a = c.attr("transpose_a").integer(), p.transpose_b = c.attr("transpose_b").integer();
  p.m = y[y.size() - 2], p.k = a[a.size() - (p.transpose_a ? 2 : 1)];
  return detail::batch_of(c, p);
}

}  // namespace weft::backend
