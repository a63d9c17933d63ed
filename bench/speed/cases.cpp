#include "cases.h"

#include <fmt/format.h>

#include <thread>

#include "limits.h"
#include "weft/ops.h"
#include "weft/tensor.h"

namespace weft::speed {
namespace {

using Operands = std::vector<Operand>;
using Op = std::function<Tensor(const std::vector<Tensor>&)>;

Tensor tensor_of(const Operand& o) {
  if (o.values.empty() && !o.indices.empty())
    return Tensor::of(std::span<const int64_t>(o.indices), o.shape, DType::i64);
  return Tensor::from_bytes(std::as_bytes(std::span(o.values)), o.shape, DType::f32);
}

Task task_of(const Operands& operands, const Op& op) {
  std::vector<Tensor> x;
  for (const auto& o : operands) x.push_back(tensor_of(o));
  const auto y = std::make_shared<Tensor>();
  return {[x, y, op] { *y = op(x); }, [y] { return y->to_vector<float>(); }};
}

/// The same operands for both; made once, when the case begins.
Case compared(std::string name, const std::string& peer_op, std::function<Operands()> make, Op op,
              double flops = 0, std::vector<double> numbers = {}) {
  const auto operands = std::make_shared<Operands>();
  const auto fill = [operands, make] {
    if (operands->empty()) *operands = make();
  };
  return {"", std::move(name),
          [=] {
            fill();
            return task_of(*operands, op);
          },
          [=] {
            fill();
            return peer_tasks(peer_op, *operands, numbers);
          },
          flops};
}

Case product(int64_t m, int64_t n, int64_t k) {
  return compared(
      fmt::format("matmul {} x {} x {}", m, n, k), "matmul",
      [=] { return Operands{random_operand({m, k}, 1), random_operand({k, n}, 2)}; },
      [](const std::vector<Tensor>& x) { return matmul(x[0], x[1]); }, 2.0 * static_cast<double>(m * n * k));
}

Group products(int threads) {
  Group g{"f32 matmul", threads, 0.75, 0.5, {}};
  for (const int64_t n : {64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048})
    g.cases.push_back(product(n, n, n));
  for (const auto& [m, n, k] : {std::tuple<int64_t, int64_t, int64_t>{65, 65, 65},
                                {100, 100, 100},
                                {127, 255, 511},
                                {333, 777, 555},
                                {1000, 1000, 1000},
                                {64, 4096, 1024},
                                {2048, 64, 512},
                                {4, 1024, 1024},
                                {1, 4096, 1024}})
    g.cases.push_back(product(m, n, k));
  return g;
}

// 1 k to 16 M elements, in rows of 64 to 4096.
std::vector<std::pair<int64_t, int64_t>> row_shapes() {
  return {{16, 64}, {4, 1024}, {128, 128}, {64, 1024}, {512, 1024}, {1024, 1024}, {4096, 1024}, {4096, 4096}};
}

Group rows() {
  Group g{"rows and elements", 2, 1.0, 0, {}};
  for (const auto& [r, n] : row_shapes()) {
    const auto shape = std::vector<int64_t>{r, n};
    const std::string size = fmt::format("{} x {}", r, n);
    g.cases.push_back(compared(
        "softmax " + size, "softmax", [=] { return Operands{random_operand(shape, 3, 2)}; },
        [](const std::vector<Tensor>& x) { return softmax(x[0]); }));
    g.cases.push_back(compared(
        "rms_norm " + size, "rms_norm",
        [=, n = n] { return Operands{random_operand(shape, 4), random_operand({n}, 5)}; },
        [](const std::vector<Tensor>& x) { return rms_norm(x[0], x[1]); }));
    g.cases.push_back(compared(
        "cross_entropy " + size, "cross_entropy",
        [=, r = r, n = n] {
          Operand target{{r}, {}, {}};
          for (int64_t i = 0; i < r; ++i) target.indices.push_back(i * 7919 % n);
          return Operands{random_operand(shape, 6, 2), target};
        },
        [](const std::vector<Tensor>& x) { return cross_entropy(x[0], x[1]); }));
  }
  return g;
}

Group dispatch() {
  // Reach: at most 0.35 of the peer's time.
  Group g{"calls", 1, 1 / 0.35, 1 / 0.35, {}};
  const auto small = [] { return Operands{random_operand({16}, 7), random_operand({16}, 8)}; };
  g.cases.push_back(compared("add of 16 elements", "add", small,
                             [](const std::vector<Tensor>& x) { return add(x[0], x[1]); }));
  g.cases.push_back(
      compared("10 products, forward and backward", "chain10", small, [](const std::vector<Tensor>& x) {
        Tensor w = x[1].detach(), y = x[0];
        w.requires_grad(true);
        for (int i = 0; i < 10; ++i) y = mul(y, w);
        y.backward(x[0]);
        return w.grad();
      }));
  return g;
}

}  // namespace

std::vector<Group> all_groups() {
  const int threads = static_cast<int>(std::min(2u, std::max(1u, std::thread::hardware_concurrency())));
  std::vector<Group> all{products(1)};
  if (threads > 1) all.push_back(products(threads));
  all.push_back(rows());
  all.push_back(dispatch());
  return all;
}

}  // namespace weft::speed
