#include "weft/shared/ops/matmul.hpp"
#include "backends/onednn/product.h"

// matmul: each product of the leading axes in blocks.
namespace weft::onednn {

using namespace weft::backend;

namespace {

/// The products of a call, and where the operands of each begin.
struct Products {
  BlockedProduct product;
  shared::Walk<2> walk;
  int64_t a_size, b_size, c_size;  // bytes of a matrix

  static std::span<const int64_t> leading(TypeView t) {
    return t.max().first(static_cast<size_t>(t.rank() - 2));
  }
  static Product of(const OpCall& c) {
    const TypeView a = c.input(0), y = c.output(0);
    const bool ta = c.attr("transpose_a").integer() != 0, tb = c.attr("transpose_b").integer() != 0;
    const auto size = [](TypeView t, int64_t back) { return t.max()[static_cast<size_t>(t.rank() - back)]; };
    Product p{.type = y.dtype(), .m = size(y, 2), .n = size(y, 1), .k = size(a, ta ? 2 : 1)};
    p.a_row = ta ? 1 : p.k, p.a_column = ta ? p.m : 1;
    p.b_row = tb ? 1 : p.n, p.b_column = tb ? p.k : 1;
    p.accumulate = c.accumulates(0);
    return p;
  }
  explicit Products(const OpCall& c)
      : product(of(c), shared::product(leading(c.output(0)))),
        walk(leading(c.output(0)), {leading(c.input(0)), leading(c.input(1))}) {
    const Product p = of(c);
    const auto bytes = static_cast<int64_t>(byte_size(p.type));
    a_size = p.m * p.k * bytes, b_size = p.k * p.n * bytes, c_size = p.m * p.n * bytes;
  }

  void run(const Launch& l) const {
    const int64_t blocks = product.blocks();
    l.host().parallel_for(walk.total() * blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t batch = i / blocks;
        char *a = l.input(0).data(), *b = l.input(1).data();
        walk.run(batch, batch + 1,
                 [&](int64_t, const auto& at, int64_t) { a += at[0] * a_size, b += at[1] * b_size; });
        product.run(i % blocks, a, b, nullptr, l.output(0).data() + batch * c_size);
      }
    });
  }
};

Support accepts(const OpCall& c) {
  if (auto s = shared::detail::accepts_matmul(c); !s) return s;
  if (auto s = accepts_types(c); !s) return s;
  if (c.accumulate() && c.output(0).dtype() != DType::f32) return Support::no("adds to f32 only");
  return tried([&] { Products products(c); });
}

Outcome prepare(const OpCall& c, weft_plan& plan) { return keep(plan, std::make_unique<Products>(c)); }

Outcome launch(const Launch& l) {
  static_cast<const Products*>(l.raw()->plan->data)->run(l);
  return Outcome::ok();
}

}  // namespace

extern const KernelRecord matmul_blocks = {
    .op = "matmul",
    .variant = "blocks",
    .reads = {"transpose_a", "transpose_b"},
    .accepts = accepts,
    .prepare = prepare,
    .release = release<Products>,
    .launch = launch,
    .determinism = WEFT_DETERMINISM_RUN,  // blocks depend on the other sizes
    .accumulates = true,
};

}  // namespace weft::onednn
