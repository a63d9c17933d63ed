#pragma once
#include "matmul_body.hpp"
#include "weft/backend/product.hpp"

// Which products of f32 run on tensor cores (split_kernel.hpp).
namespace weft::cuda::hopper {

/// A product, and which inputs of the call are its operands; -1: there is none.
struct SplitProduct {
  backend::Product sizes;
  int a = 0, b = 1, bias = -1, onto = -1;
};

/// Fewer terms than these have a bound that is near what the parts and the sums of a slice lose. Products
/// that are small, or have few rows, take less time without tensor cores.
inline constexpr int64_t kLeastSplitTerms = 64, kLeastSplitRows = 17, kLeastSplitProducts = int64_t{1} << 25;

/// A layer that is added to an operand, which the compiler has made one call.
inline backend::Support layer_onto(const backend::OpCall& c, SplitProduct& p) {
  using backend::elements, backend::Support;
  const auto body = matmul_body(c);
  if (!body || body->ending != Ending::sum) return Support::no("wants a layer that is added to an operand");
  if (c.accumulate() != 0) return Support::no("adds to one operand only");
  for (int64_t i = 0; i < c.n_inputs(); ++i)
    if (c.input(i).has() && c.input(i).dtype() != DType::f32)
      return Support::no("input {} is of {}, wanted f32", i, c.input(i).dtype());
  p.a = body->a, p.b = body->b, p.bias = body->bias, p.onto = body->other;
  const auto y = c.output(0).max(), weight = c.input(p.b).max();
  if (weight.size() != 2 || y.empty()) return Support::no("its operands are views of others");
  backend::Product& s = p.sizes;
  s.transpose_b = body->transpose_b, s.n = y.back(), s.k = weight[s.transpose_b ? 1 : 0];
  s.m = elements(y) / s.n;
  const auto has = [&](int input, int64_t n) { return input < 0 || elements(c.input(input).max()) == n; };
  const bool fits = weight[s.transpose_b ? 0 : 1] == s.n && has(p.a, s.m * s.k) && has(p.bias, s.n) &&
                    has(p.onto, s.m * s.n);
  return fits ? Support::yes() : Support::no("its operands are views of others");
}

/// A call's product, or why it is refused.
inline backend::Support split_product(const backend::OpCall& c, SplitProduct& p) {
  using backend::Support;
  if (auto floats = backend::plain_floats(c); !floats) return floats;
  if (const DType t = c.output(0).dtype(); t != DType::f32) return Support::no("computes in f32, got {}", t);
  const bool alone = c.op() == "matmul" || c.op() == "linear";
  if (auto read = alone ? backend::product_of(c, p.sizes) : layer_onto(c, p); !read) return read;
  const backend::Product& s = p.sizes;
  if (s.bias) p.bias = 2;
  if (s.k < kLeastSplitTerms) return Support::no("{} terms at least, got {}", kLeastSplitTerms, s.k);
  if (s.m < kLeastSplitRows) return Support::no("{} rows at least, got {}", kLeastSplitRows, s.m);
  if (s.batch * s.m * s.n * s.k < kLeastSplitProducts) return Support::no("it is small");
  // Tiles are copied from addresses that are multiples of 16 bytes.
  if (const int64_t row = s.transpose_a ? s.m : s.k; row % 4)
    return Support::no("the first operand has rows of {} elements, wanted a multiple of 4", row);
  constexpr int64_t kMost = int64_t{1} << 31;  // coordinates and numbers of tiles are int
  if (s.m >= kMost || s.n >= kMost || s.k >= kMost ||
      s.batch * ((s.m + 127) / 128) * ((s.n + 95) / 96) >= kMost / 16)
    return Support::no("{} matrices of {} x {}", s.batch, s.m, s.n);
  return Support::yes();
}

}  // namespace weft::cuda::hopper
