#include <fmt/format.h>

#include <cmath>
#include <random>

#include "base/thread_pool.h"
#include "cases.h"
#include "weft/ops.h"

// The gain from threads: each op at sizes from a few elements to millions, on one thread and on all of the
// group's. A kernel that splits work that is too small loses here.
namespace weft::speed {
namespace {

using Tensors = std::vector<Tensor>;
using Shapes = std::vector<std::vector<int64_t>>;

/// `op` on noise, by `threads` threads, and by one as the peer.
Case against_one(std::string name, int threads, Shapes shapes, Op op) {
  const auto noise = [shapes = std::move(shapes)] {
    Operands all;
    for (const auto& shape : shapes) all.push_back(random_operand(shape, all.size() + 1));
    return all;
  };
  Case c = compared(std::move(name), "", noise, std::move(op));
  const auto on = [make = c.ours](int n) {
    Task task = make();
    task.before = [n, run = task.run] { set_thread_count(n), run(); };
    return task;
  };
  c.ours = [on, threads] { return on(threads); };
  c.peers = [on] { return std::vector<PeerTask>{{"1 thread", on(1), {}}}; };
  return c;
}

/// Sizes drawn log-uniformly; the same ones in each run.
class Draw {
 public:
  int64_t size(double least, double most) {
    const double at = std::uniform_real_distribution<double>(std::log(least), std::log(most))(random_);
    return std::llround(std::exp(at));
  }

 private:
  std::mt19937_64 random_{16};
};

/// About `elements` elements in rows of random length.
std::vector<int64_t> in_rows(Draw& draw, int64_t elements) {
  const int64_t n = draw.size(8, 4096);
  return {std::max<int64_t>(1, elements / n), n};
}

Tensor labels_of(const Tensor& x) {
  std::vector<int64_t> at(static_cast<size_t>(x.sizes()[0]));
  for (size_t i = 0; i < at.size(); ++i) at[i] = static_cast<int64_t>(i * 7919) % x.sizes()[1];
  return Tensor::of(std::span<const int64_t>(at), std::vector{x.sizes()[0]}, DType::i64);
}

void add_elements(Group& g, Draw& draw, int64_t n) {
  const auto shape = in_rows(draw, n);
  const int64_t columns = shape[1];
  const auto add_case = [&](const char* op, Shapes shapes, Op f) {
    g.cases.push_back(against_one(fmt::format("{} {} x {}", op, shape[0], columns), g.threads,
                                  std::move(shapes), std::move(f)));
  };
  const std::vector<int64_t> row{columns};
  add_case("add", {shape, shape}, [](const Tensors& x) { return add(x[0], x[1]); });
  add_case("add a row", {shape, row}, [](const Tensors& x) { return add(x[0], x[1]); });
  add_case("exp", {shape}, [](const Tensors& x) { return exp(x[0]); });
  add_case("gelu", {shape}, [](const Tensors& x) { return gelu(x[0]); });
  add_case("cast to bf16", {shape}, [](const Tensors& x) { return cast(x[0], DType::bf16); });
  add_case("transpose", {shape}, [](const Tensors& x) { return permute(x[0], Shape{1, 0}); });
  add_case("concat", {shape, shape},
           [](const Tensors& x) { return concat(x[0], x[1], {}, {}, {}, {}, {}, {}, 1); });
  add_case("sum", {shape}, [](const Tensors& x) { return sum(x[0]); });
  add_case("sum of rows", {shape}, [](const Tensors& x) { return sum(x[0], Shape{1}); });
  add_case("sum of columns", {shape}, [](const Tensors& x) { return sum(x[0], Shape{0}); });
  add_case("max of rows", {shape}, [](const Tensors& x) { return max(x[0], Shape{1}); });
  add_case("max of columns", {shape}, [](const Tensors& x) { return max(x[0], Shape{0}); });
  add_case("cumsum", {shape}, [](const Tensors& x) { return cumsum(x[0], 1); });
  add_case("softmax", {shape}, [](const Tensors& x) { return softmax(x[0]); });
  add_case("layer_norm", {shape, row, row}, [](const Tensors& x) { return layer_norm(x[0], x[1], x[2]); });
  add_case("cross_entropy", {shape}, [to = Tensor()](const Tensors& x) mutable {
    if (!to) to = labels_of(x[0]);
    return cross_entropy(x[0], to);
  });
  add_case("gather", {shape}, [to = Tensor()](const Tensors& x) mutable {
    if (!to) to = labels_of(permute(x[0], Shape{1, 0}));
    return gather(x[0], to);
  });
}

void add_products(Group& g, Draw& draw, double macs) {
  const double side = std::cbrt(macs);
  const int64_t m = draw.size(side / 3, side * 3), n = draw.size(side / 3, side * 3),
                k = std::max<int64_t>(1, std::llround(macs / static_cast<double>(m * n)));
  const std::string size = fmt::format(" {} x {} x {}", m, n, k);
  g.cases.push_back(against_one("matmul" + size, g.threads, {{m, k}, {k, n}},
                                [](const Tensors& x) { return matmul(x[0], x[1]); }));
  g.cases.push_back(against_one("linear" + size, g.threads, {{m, k}, {n, k}, {n}},
                                [](const Tensors& x) { return linear(x[0], x[1], x[2]); }));
  const int64_t few = draw.size(1, 8),
                wide = std::max<int64_t>(1, std::llround(macs / 16 / static_cast<double>(k)));
  g.cases.push_back(against_one(fmt::format("linear {} x {} x {}", few, wide, k), g.threads,
                                {{few, k}, {wide, k}}, [](const Tensors& x) { return linear(x[0], x[1]); }));
}

void add_windows(Group& g, Draw& draw, double macs) {
  const int64_t channels = draw.size(1, 64), side = draw.size(5, 30);
  const int64_t filters =
      std::max<int64_t>(1, std::llround(macs / 9 / static_cast<double>(channels * side * side)));
  g.cases.push_back(against_one(fmt::format("conv {} -> {}, {}x{}", channels, filters, side, side), g.threads,
                                {{1, channels, side, side}, {filters, channels, 3, 3}}, [](const Tensors& x) {
                                  return conv(x[0], x[1], Shape{1, 1}, Shape{1, 1, 1, 1});
                                }));
  const int64_t heads = draw.size(1, 8), dim = 8 * draw.size(1, 8);
  const int64_t n =
      std::max<int64_t>(2, std::llround(std::sqrt(macs / static_cast<double>(2 * heads * dim))));
  const std::vector<int64_t> shape{1, heads, n, dim};
  g.cases.push_back(against_one(fmt::format("attention {} x {} x {}", heads, n, dim), g.threads,
                                {shape, shape, shape},
                                [](const Tensors& x) { return attention(x[0], x[1], x[2]); }));
  const std::vector<int64_t> one{1, heads, 1, dim};
  g.cases.push_back(against_one(fmt::format("attention of 1, {} x {} x {}", heads, n, dim), g.threads,
                                {one, shape, shape},
                                [](const Tensors& x) { return attention(x[0], x[1], x[2]); }));
}

}  // namespace

Group worth_of_threads(int threads) {
  Group g{"threads against one", threads, 1, 0.93, {}};
  g.round = 0.015;  // there are many
  Draw draw;
  for (const auto& [m, n, k] :
       {std::tuple<int64_t, int64_t, int64_t>{64, 64, 64}, {100, 100, 100}, {128, 128, 128}, {127, 255, 511}})
    g.cases.push_back(against_one(fmt::format("matmul {} x {} x {}", m, n, k), threads, {{m, k}, {k, n}},
                                  [](const Tensors& x) { return matmul(x[0], x[1]); }));
  for (double macs = 1 << 14; macs < 1 << 28; macs *= 3) add_products(g, draw, macs);
  for (double macs = 1 << 14; macs < 1 << 28; macs *= 6) add_windows(g, draw, macs);
  for (int64_t n = 1 << 9; n <= 1 << 21; n *= 4)
    add_elements(g, draw, n + draw.size(1, static_cast<double>(n)));
  return g;
}

Group odd_products(int threads) {
  Group g{"odd f32 matmul beside oneDNN", threads, 0.75, 0.6, {}};
  Draw draw;
  for (int i = 0; i < 24; ++i) {
    const int64_t m = draw.size(1, 1000) | 1, n = draw.size(4, 2000) | 1, k = draw.size(4, 2000) | 1;
    Case c = product(m, n, k);
    c.peers = [all = c.peers] {
      auto peers = all();
      std::erase_if(peers, [](const PeerTask& p) { return p.library != "oneDNN"; });
      return peers;
    };
    g.cases.push_back(std::move(c));
  }
  return g;
}

}  // namespace weft::speed
