#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "cases.h"
#include "weft/backend.h"
#include "weft/einsum.h"
#include "weft/ops.h"
#include "weft/policy_scope.h"

// The cost of determinism: a demanded level restricts the choice to kernels that promise it, which may be
// slower.
namespace weft::speed {
namespace {

struct Level {
  uint8_t value;
  const char* name;
};
constexpr Level kLevels[] = {{WEFT_DETERMINISM_RUN, "run"},
                             {WEFT_DETERMINISM_BATCH, "batch"},
                             {WEFT_DETERMINISM_THREADS, "threads"},
                             {WEFT_DETERMINISM_DEVICES, "devices"}};

using Tensors = std::vector<Tensor>;

/// An op on noise of these shapes.
Case on_noise(std::string name, std::vector<std::vector<int64_t>> shapes, Op op) {
  const auto noise = [shapes = std::move(shapes)] {
    Operands all;
    for (const auto& shape : shapes) all.push_back(random_operand(shape, all.size() + 1));
    return all;
  };
  return compared(std::move(name), "", noise, std::move(op));
}

/// Row numbers below `below`, with many duplicates.
Tensor some_rows(int64_t n, int64_t below) {
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < n; ++i) rows.push_back(i * 7919 % below);
  return Tensor::of(std::span<const int64_t>(rows), std::vector{n}, DType::i64);
}

void add_products(std::vector<Case>& all) {
  for (const int64_t n : {64, 256, 512})
    all.push_back(on_noise(fmt::format("matmul {0} x {0} x {0}", n), {{n, n}, {n, n}},
                           [](const Tensors& x) { return matmul(x[0], x[1]); }));
  for (const int64_t rows : {1, 256})
    all.push_back(on_noise(fmt::format("linear {} x 512 -> 512", rows), {{rows, 512}, {512, 512}, {512}},
                           [](const Tensors& x) { return linear(x[0], x[1], x[2]); }));
  all.push_back(on_noise("einsum ij,jk,kl->il of 128", {{128, 128}, {128, 128}, {128, 128}},
                         [](const Tensors& x) { return einsum("ij,jk,kl->il", x); }));
  all.push_back(on_noise("conv2d 64 -> 64, 28 x 28, 3 x 3", {{1, 64, 28, 28}, {64, 64, 3, 3}},
                         [](const Tensors& x) { return conv(x[0], x[1], Shape{1, 1}, Shape{1, 1, 1, 1}); }));
  for (const int64_t queries : {1, 256})
    all.push_back(on_noise(fmt::format("attention {} x 256", queries),
                           {{1, 8, queries, 64}, {1, 8, 256, 64}, {1, 8, 256, 64}},
                           [](const Tensors& x) { return attention(x[0], x[1], x[2]); }));
}

void add_rows(std::vector<Case>& all) {
  for (const int64_t rows : {16, 1024}) {
    const std::string size = fmt::format(" {} x 1024", rows);
    const std::vector<std::vector<int64_t>> one{{rows, 1024}};
    all.push_back(on_noise("sum" + size, one, [](const Tensors& x) { return sum(x[0]); }));
    all.push_back(on_noise("softmax" + size, one, [](const Tensors& x) { return softmax(x[0]); }));
    all.push_back(on_noise("cross_entropy" + size, one, [to = some_rows(rows, 1024)](const Tensors& x) {
      return cross_entropy(x[0], to);
    }));
    all.push_back(
        on_noise("scatter_add" + size, {{64, 1024}, {rows, 1024}},
                 [to = some_rows(rows, 64)](const Tensors& x) { return scatter_add(x[0], to, x[1]); }));
    all.push_back(on_noise("add" + size, {{rows, 1024}, {rows, 1024}},
                           [](const Tensors& x) { return add(x[0], x[1]); }));
  }
}

/// The case at one level; none if there is no kernel for it.
std::optional<Task> at_level(const Case& c, uint8_t level) {
  const Policy asked{.determinism = level};
  const PolicyScope scope(asked);
  try {
    Task task = c.ours();
    task.run();
    task.run = [asked, run = task.run] {
      const PolicyScope again(asked);
      run();
    };
    return task;
  } catch (const Error& e) {
    if (e.status().code() != Code::unsupported) throw;
    return std::nullopt;
  }
}

}  // namespace

Group determinism_prices(int threads) {
  Group g{.name = "determinism", .threads = threads, .cases = {}, .amounts = {}, .by_level = true};
  add_products(g.cases);
  add_rows(g.cases);
  for (Case& step : small_training_steps()) g.cases.push_back(std::move(step));
  return g;
}

int print_prices(const Group& group, nlohmann::json& out) {
  fmt::print("\n{}, {} threads: the time at each level over that without a demand\n{:<34}", group.name,
             group.threads, "");
  for (const Level& level : kLevels) fmt::print(" {:>9}", level.name);
  fmt::print("\n");
  int wrong = 0;
  for (const Case& c : group.cases) {
    fmt::print("{:<34}", c.name);
    const Task free = c.ours();
    for (const Level& level : kLevels) {
      nlohmann::json row{
          {"group", group.name}, {"threads", group.threads}, {"case", c.name}, {"level", level.name}};
      if (const auto held = at_level(c, level.value)) {
        const Measured m = measure(free, *held, 0.03);
        const bool differs = !(m.difference <= 1e-3);
        wrong += differs;
        fmt::print(" {:>9}", differs ? "DIFFERS" : fmt::format("{:.2f}", m.ratio));
        row.update(
            {{"free_s", m.ours}, {"held_s", m.peer}, {"price", m.ratio}, {"low", m.low}, {"high", m.high}});
        row["difference"] = m.difference;
      } else {
        fmt::print(" {:>9}", "not given");
        row["price"] = nullptr;
      }
      out.push_back(std::move(row));
      std::fflush(stdout);
    }
    fmt::print("\n");
  }
  return wrong;
}

}  // namespace weft::speed
