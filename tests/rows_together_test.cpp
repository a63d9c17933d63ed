#include <gtest/gtest.h>

#include <algorithm>

#include "small_model.h"
#include "test_backends.h"
#include "weft/jit.h"
#include "weft/ops.h"

// A sum and its norm as one call: the bits of two calls, fewer steps, and no more memory.
namespace weft::testing::rows_together_test {
namespace {

Tensor drawn(std::vector<int64_t> shape, DType dtype, uint64_t seed) {
  int64_t n = 1;
  for (const int64_t d : shape) n *= d;
  const auto values = SmallModel::noise(static_cast<size_t>(n), seed);
  return Tensor::of(std::span<const double>(values), shape, dtype);
}

/// A norm of a sum of two inputs of those shapes, with a weight and a bias as further inputs.
struct Case {
  const char* how;
  std::vector<int64_t> a, b, row;
  std::vector<Tensor> (*function)(const std::vector<Tensor>&);
};
const Case kCases[] = {
    {"rms norm",
     {3, 5, 37},
     {3, 5, 37},
     {37},
     [](const auto& in) { return std::vector{rms_norm(in[0] + in[1], in[2], 1e-2)}; }},
    {"the sum goes on",
     {3, 5, 37},
     {3, 5, 37},
     {37},
     [](const auto& in) {
       const Tensor total = in[0] + in[1], y = rms_norm(total, in[2]);
       return std::vector{y, sum(total)};
     }},
    {"both are results, of two axes",
     {4, 3, 8},
     {4, 3, 8},
     {3, 8},
     [](const auto& in) {
       const Tensor sum = in[0] + in[1];
       return std::vector{sum, layer_norm(sum, in[2], in[3], 2, 1e-2)};
     }},
    {"an operand is repeated",
     {4, 6, 16},
     {1, 6, 16},
     {16},
     [](const auto& in) { return std::vector{layer_norm(in[0] + in[1], in[2], in[3])}; }},
    {"the other one is, and has fewer axes",
     {6, 16},
     {4, 6, 16},
     {16},
     [](const auto& in) { return std::vector{layer_norm(in[0] + in[1], in[2])}; }},
    {"no rows",
     {0, 16},
     {0, 16},
     {16},
     [](const auto& in) { return std::vector{rms_norm(in[0] + in[1], in[2])}; }},
};
// One of them is no row, or has no place of its own: two calls.
const Case kOthers[] = {
    {"numbers are repeated within a row",
     {4, 16},
     {4, 1},
     {16},
     [](const auto& in) { return std::vector{rms_norm(in[0] + in[1], in[2])}; }},
    {"a bias alone",
     {4, 16},
     {4, 16},
     {16},
     [](const auto& in) { return std::vector{layer_norm(in[0] + in[1], Tensor(), in[3])}; }},
    {"one row is weight and bias",
     {4, 16},
     {4, 16},
     {16},
     [](const auto& in) { return std::vector{layer_norm(in[0] + in[1], in[2], in[2])}; }},
    {"what is added is the weight",
     {4, 16},
     {16},
     {16},
     [](const auto& in) { return std::vector{rms_norm(in[0] + in[2], in[2])}; }},
};

std::vector<Tensor> operands(const Case& c, DType t) {
  return {drawn(c.a, t, 1), drawn(c.b, t, 2), drawn(c.row, t, 3), drawn(c.row, t, 4)};
}
Compiled compiled(const Case& c, const std::vector<Tensor>& in, const std::string& backend, bool fuse) {
  std::vector<InputSpec> specs;
  for (size_t i = 0; i < in.size(); ++i)
    specs.push_back({fmt::format("x{}", i), {in[i].dtype(), to_shape(in[i].sizes())}});
  return compile(c.function, specs, {.backend = backend, .fuse = fuse});
}
std::vector<std::vector<double>> numbers(const std::vector<Tensor>& all) {
  std::vector<std::vector<double>> out;
  for (const Tensor& t : all) out.push_back(t.to_vector<double>());
  return out;
}
bool has_kernel(const Compiled& program) {
  const std::string plan = program.schedule_text();
  return plan.find(".add_rms_norm.rows  ") != plan.npos || plan.find(".add_layer_norm.rows  ") != plan.npos;
}

TEST(RowsTogether, HaveTheBitsOfTwoCalls) {
  for (const auto& backend : backends({"native", "openmp"})) {
    const OnBackend on(backend);
    for (const DType t : {DType::f32, DType::bf16, DType::f16})
      for (const auto& [cases, one] : {std::pair(std::span<const Case>(kCases), true), {kOthers, false}})
        for (const Case& c : cases) {
          const auto in = operands(c, t);
          auto whole = compiled(c, in, backend, true), parts = compiled(c, in, backend, false);
          EXPECT_EQ(numbers(whole(in)), numbers(parts(in))) << c.how << " on " << backend;
          EXPECT_EQ(has_kernel(whole), one) << c.how << "\n" << whole.schedule_text();
          EXPECT_FALSE(has_kernel(parts));
        }
  }
}

// Norms before and behind what is added to a residual, as Gemma's layers have them: the residual's memory
// serves for all of its sums.
TEST(RowsTogether, TakeFewerStepsAndNoMoreMemory) {
  const OnBackend on("native");
  const auto layers = [](const std::vector<Tensor>& in) {
    Tensor residual = in[0], normed = rms_norm(residual, in[2]);
    for (int i = 0; i < 4; ++i) {
      residual = residual + rms_norm(gelu(normed), in[3]);
      normed = rms_norm(residual, in[2]);
    }
    return std::vector{normed};
  };
  const Case c{"layers", {64, 256}, {1}, {256}, layers};
  const auto in = operands(c, DType::f32);
  auto whole = compiled(c, in, "native", true), parts = compiled(c, in, "native", false);
  EXPECT_EQ(numbers(whole(in)), numbers(parts(in)));
  const auto steps = [](const Compiled& p) {
    const std::string plan = p.schedule_text();
    size_t n = 0;
    for (size_t at = 0; (at = plan.find(" -> ", at)) != plan.npos; ++at) ++n;
    return n;
  };
  EXPECT_EQ(steps(whole) + 4, steps(parts)) << whole.schedule_text();
  EXPECT_LE(whole.arena().bytes, parts.arena().bytes);
}

}  // namespace
}  // namespace weft::testing::rows_together_test
