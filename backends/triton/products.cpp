#include "products.h"

#include "cubin.h"
#include "weft/backend/product.hpp"

namespace weft::cubins {

using namespace backend;

namespace {

// Large tiles where they keep most of a GPU busy, which 64 of 128 x 256 do.
constexpr int64_t kEnoughTiles = 64;

int64_t down(int64_t a, int64_t b) { return (a + b - 1) / b; }

std::string name_of_kernel(const Product& p) {
  const bool large = p.batch * down(p.m, 128) * down(p.n, 256) >= kEnoughTiles;
  return format("matmul_{}_{}{}_{}", name_of(p.dtype), int{p.transpose_a}, int{p.transpose_b},
                large ? "large" : "small");
}

}  // namespace

Support takes_product(const OpCall& c) {
  Product p;
  if (auto s = takes_sizes(c); !s) return s;
  if (auto s = product_of(c, p); !s) return s;
  if (p.dtype != DType::f16 && p.dtype != DType::bf16)
    return Support::no("computes on f16 and bf16, got {}", p.dtype);
  if (p.bias) return Support::no("adds no bias");
  if (p.batch > 65535) return Support::no("a batch below 65,536, got {}", p.batch);
  return there(name_of_kernel(p));
}

Outcome launch_product(const Launch& l) {
  Product p;
  if (auto s = product_of(l.call(), p); !s) return Outcome::fail(WEFT_INTERNAL, "{}", s.reason);
  const auto number = [](int64_t n) { return static_cast<int32_t>(n); };
  // Of each operand one stride is 1, which the kernel knows: the other one is that of the row in memory.
  const int32_t a = number(p.transpose_a ? p.m : p.k), b = number(p.transpose_b ? p.k : p.n);
  std::string why;
  const bool multiples = p.n % 16 == 0 && p.k % 16 == 0 && (!p.transpose_a || p.m % 16 == 0);
  const Kernel* kernel = kernel_for(l, name_of_kernel(p), multiples, why);
  if (!kernel) return Outcome::fail(WEFT_DEVICE, "{}", why);
  const Cubin& cubin = kernel->cubin();
  const dim3 blocks(static_cast<unsigned>(down(p.m, cubin.rows) * down(p.n, cubin.columns)),
                    static_cast<unsigned>(p.batch));
  return kernel->start(l, blocks, l.input(0).data<void>(), l.input(1).data<void>(), l.output(0).data<void>(),
                       number(p.m), number(p.n), number(p.k), a, b, p.a_stride, p.b_stride, p.m * p.n,
                       number(p.batch), number(p.a_stride ? p.batch : 1), number(p.b_stride ? p.batch : 1));
}

}  // namespace weft::cubins
