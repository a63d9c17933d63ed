#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <random>

#include "cases.h"
#include "weft/jit.h"
#include "weft/ops.h"

// Two linear layers whose weights are constants of the program, and so packed once, against the same with
// weights owned by the caller, which are read in place.
namespace weft::speed {
namespace {

using Clock = std::chrono::steady_clock;

Tensor noise(const IntList& shape) {
  std::mt19937 random(1);
  std::vector<float> values(static_cast<size_t>(element_count(std::span<const int64_t>(shape))));
  for (float& v : values) v = std::uniform_real_distribution<float>(-0.05F, 0.05F)(random);
  return Tensor::of(std::span<const float>(values), shape, DType::f32, "native");
}

struct Layers {
  Layers(int64_t rows, int64_t in, int64_t out, bool constant)
      : w(noise({out, in})), back(noise({in, out})), x(noise({rows, in})) {
    program.emplace(compile(
        [&](const std::vector<Tensor>& i) { return std::vector{linear(relu(linear(i[0], w)), back)}; },
        {{"x", {DType::f32, {rows, in}}}}, {.backend = "native", .take_captured = !constant}));
  }
  double seconds(int runs) {
    const auto begin = Clock::now();
    for (int i = 0; i < runs; ++i) y = (*program)({x})[0];
    return std::chrono::duration<double>(Clock::now() - begin).count() / runs;
  }
  Tensor w, back, x, y;
  std::optional<Compiled> program;
};

// The largest difference of values that are sums of `in` and `out` products of at most 0.05 each.
double difference(const Tensor& a, const Tensor& b) {
  const auto x = a.to_vector<float>(), y = b.to_vector<float>();
  double most = 0;
  for (size_t i = 0; i < x.size(); ++i) most = std::max(most, std::fabs(double{x[i]} - y[i]));
  return most;
}

}  // namespace

Group packing(int threads) {
  Group g{.name = "packed weights", .threads = threads, .cases = {}, .amounts = {}};
  g.print = print_packing;
  return g;
}

int print_packing(const Group& group, nlohmann::json& out) {
  fmt::print(
      "\n{}: two linear layers on native, {} threads, weights packed once beside weights as they are\n",
      group.name, group.threads);
  int wrong = 0;
  for (const auto& [in, hidden] : {std::pair<int64_t, int64_t>{384, 1536}, {768, 3072}})
    for (const int64_t rows : {1, 8, 64, 256}) {
      Layers packed(rows, in, hidden, true), plain(rows, in, hidden, false);
      const int runs = rows <= 8 ? 20 : 3;
      std::vector<double> with, without;
      for (int i = 0; i < 15; ++i)
        with.push_back(packed.seconds(runs)), without.push_back(plain.seconds(runs));
      const double a = median(with), b = median(without);
      const bool right = difference(packed.y, plain.y) <= 1e-5;
      wrong += !right;
      fmt::print("  {:4} x {:4} x {:4}  {:8.1f} us packed, {:8.1f} us as they are: {:.2f} times as fast{}\n",
                 rows, in, hidden, a * 1e6, b * 1e6, b / a, right ? "" : ", OTHER RESULTS");
      out.push_back({{"group", group.name}, {"rows", rows}, {"in", in}, {"packed_s", a}, {"plain_s", b}});
    }
  return wrong;
}

}  // namespace weft::speed
