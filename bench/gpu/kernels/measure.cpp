#include "measure.hpp"

#include <algorithm>
#include <cstdio>

#include "weft/ledger.h"
#include "weft/policy_scope.h"
#include "weft/random.h"

namespace weft::bench {

double middle(std::vector<double> times) {
  std::ranges::nth_element(times, times.begin() + static_cast<ptrdiff_t>(times.size() / 2));
  return times[times.size() / 2];
}

double seconds(Compiled& program, const std::vector<Tensor>& inputs) {
  for (int i = 0; i < 4; ++i) program(inputs);  // the first runs link and record
  std::vector<double> times;
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = Clock::now();
    for (int i = 0; i < kRuns; ++i) (void)program.enqueue(inputs);
    program.wait();
    times.push_back(std::chrono::duration<double>(Clock::now() - begin).count() / kRuns);
  }
  return middle(std::move(times));
}

Tensor random(uint64_t seed, std::initializer_list<int64_t> shape, DType dtype) {
  int64_t n = 1;
  for (const int64_t d : shape) n *= d;
  std::vector<float> all(static_cast<size_t>(std::min<int64_t>(n, 1 << 20)));
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<float>(2 * unit(random_word(seed, i)) - 1);
  const int64_t size[] = {static_cast<int64_t>(all.size())};
  const Tensor piece = Tensor::of(std::span<const float>(all), size, dtype);
  const int64_t times = (n + size[0] - 1) / size[0];
  const Tensor many = reshape(broadcast(reshape(piece, {1, size[0]}), {times, size[0]}), {times * size[0]});
  return reshape(slice(many, 0, 0, n), Shape(shape.begin(), shape.end()));
}

InputSpec spec_of(const std::string& name, const Tensor& t) { return {name, t.type()}; }

void print(const std::string& op, int64_t rows, int64_t columns, double time, double bytes) {
  std::printf(
      R"({"op": "%s", "rows": %lld, "columns": %lld, "microseconds": %.2f, "gigabytes_per_second": %.0f})"
      "\n",
      op.c_str(), static_cast<long long>(rows), static_cast<long long>(columns), time * 1e6,
      bytes / time / 1e9);
  std::fflush(stdout);
}

static double largest(const Tensor& t) { return max(abs(t)).item(); }

double error_of(const std::vector<Tensor>& got, const std::vector<Tensor>& exact) {
  double most = 0;
  for (size_t i = 0; i < got.size(); ++i)
    most = std::max(most, largest(cast(got[i], DType::f32) - exact[i]) / largest(exact[i]));
  return most;
}

void report(const std::string& name, const Op& f, const std::vector<Tensor>& inputs,
            const std::vector<Tensor>& exact, double operations, uint8_t precision) {
  std::vector<InputSpec> specs;
  for (const Tensor& t : inputs) specs.push_back(spec_of("x" + std::to_string(specs.size()), t));
  Policy policy = current_policy();
  policy.precision = precision;
  const PolicyScope scope(policy);
  (void)f(inputs);
  reset_ledger();
  const auto got = f(inputs);
  std::string kernels;
  for (const LedgerRow& row : ledger_rows()) kernels += (kernels.empty() ? "" : ", ") + row.kernel;
  const double error = error_of(got, exact);
  auto program = compile(f, specs, {.policy = policy});
  const double time = seconds(program, inputs);
  std::printf(R"({"op": "%s", "kernels": "%s", "error": %.2e, "microseconds": %.1f, "tflops": %.1f})"
              "\n",
              name.c_str(), kernels.c_str(), error, time * 1e6, operations / time / 1e12);
  std::fflush(stdout);
}

bool show_error(const std::string& what, double error, DType dtype) {
  const double most = dtype == DType::bf16 ? 0x1p-7 : 0x1p-20;
  std::printf(R"({"check": "%s", "error": %.2e, "most": %.2e})"
              "\n",
              what.c_str(), error, most);
  if (!(error <= most))
    std::fprintf(stderr, "%s: an error of %.2e, at most %.2e\n", what.c_str(), error, most);
  return error <= most;
}

}  // namespace weft::bench
