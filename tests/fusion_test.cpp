#include <gtest/gtest.h>

#include "compiler/compile.h"
#include "link/schedule.h"
#include "seam/registry.h"
#include "weft/jit.h"
#include "weft/ops.h"
#include "weft/random.h"
#include "weft/trace.h"

// What becomes one call, and which calls vanish because a product adds to what is there.
namespace weft::testing::fusion_test {
namespace {

constexpr int64_t kSide = 16;

std::vector<InputSpec> some(size_t n, DType dtype) {
  std::vector<InputSpec> all;
  for (size_t i = 0; i < n; ++i) all.push_back({fmt::format("x{}", i), {dtype, {kSide, kSide}}});
  return all;
}
program::CompiledProgram program_of(const TracedFunction& function, const std::vector<InputSpec>& inputs) {
  return value_or_raise(compiler::compile(*trace(function, inputs).graph, {}, {.name = "f"}));
}
std::vector<std::string> ops_of(const program::CompiledProgram& program) {
  std::vector<std::string> ops;
  for (const auto& call : program.calls) ops.push_back(call.op);
  return ops;
}

Tensor wide(const Tensor& x) { return cast(x, DType::f32); }
/// Halves added in f32 and rounded once, as gradients of a value with several readers are.
Tensor sum_of_halves(const std::vector<Tensor>& halves) {
  Tensor sum = wide(halves[0]);
  for (size_t i = 1; i < halves.size(); ++i) sum = sum + wide(halves[i]);
  return cast(sum, halves[0].dtype());
}

using Ops = std::vector<std::string>;

TEST(Fusion, AChainTakesInWhatOnlyItReads) {
  const auto sum = [](const std::vector<Tensor>& in) { return std::vector<Tensor>{sum_of_halves(in)}; };
  const auto program = program_of(sum, some(3, DType::bf16));
  EXPECT_EQ(ops_of(program), Ops{"region"});
  EXPECT_EQ(program.calls[0].inputs.size(), 3u);
  const auto and_an_operand = [](const std::vector<Tensor>& in) {
    const Tensor second = wide(in[1]), sum = wide(in[0]) + second;
    return std::vector<Tensor>{sum, matmul(second, second)};
  };
  EXPECT_EQ(ops_of(program_of(and_an_operand, some(2, DType::bf16))), (Ops{"region", "matmul"}));
}

// Far behind, where a value would keep more memory in use than its operands do.
TEST(Fusion, AChainTakesInWhatIsSmallerBeforeItHoweverFarItIs) {
  const auto late = [](bool widens) {
    return [widens](const std::vector<Tensor>& in) {
      const Tensor early = widens ? wide(in[0]) : wide(in[0]) + wide(in[1]);
      Tensor x = wide(in[2]);
      for (int i = 0; i < 60; ++i) x = matmul(x, x);
      return std::vector<Tensor>{exp(x) * early};
    };
  };
  const auto calls = [&](bool widens) { return ops_of(program_of(late(widens), some(3, DType::bf16))); };
  EXPECT_EQ(calls(true).size(), 61u) << "what the products read, and they: the last one with the chain";
  EXPECT_EQ(calls(false).size(), 62u) << "and the sum, which is as large as one of its operands";
}

TEST(Fusion, NothingMovesBehindAnOverwriteOfItsOperand) {
  for (const char* backend : {"reference", "native"}) {
    const OnBackend on(backend);
    const auto numbers = [](double first) { return Tensor::of({first, 2.0}, {2}, DType::bf16); };
    Tensor state = numbers(1).named("state");
    auto program = compile(
        [&](const std::vector<Tensor>& in) {
          const Tensor before = wide(state);
          assign(state, in[0]);
          return std::vector<Tensor>{wide(in[0]) * wide(in[0]) + before};
        },
        {{"x", {DType::bf16, {2}}}});
    EXPECT_EQ(program({numbers(8)})[0].to_vector<double>(), (std::vector<double>{65, 6})) << backend;
    EXPECT_EQ(program({numbers(3)})[0].to_vector<double>(), (std::vector<double>{17, 6})) << backend;
  }
}

Tensor drawn(uint64_t seed) {
  std::vector<double> x;
  for (uint64_t i = 0; i < kSide * kSide; ++i) x.push_back(2 * unit(random_word(seed, i)) - 1);
  return Tensor::of(std::span<const double>(x), std::vector<int64_t>{kSide, kSide}, DType::bf16);
}

/// How many calls of this op the schedule on `native` has.
size_t steps_named(const program::CompiledProgram& program, std::string_view op) {
  seam::Device* devices[] = {value_or_raise(seam::registry().open("native"))};
  const auto plan = value_or_raise(link::link(program, {}, devices, Policy{}, {}, link::Sharing::all));
  raise_if(link::check_dependencies(plan));
  return static_cast<size_t>(std::ranges::count_if(
      plan.steps, [&](const link::Step& s) { return s.prepared && s.prepared->call->desc().op == op; }));
}

// The gradient of a value that three layers read.
TEST(Fusion, ProductsOfHalvesAreAddedToWhatIsThere) {
  const auto products = [](const std::vector<Tensor>& in) {
    std::vector<Tensor> all;
    for (size_t i = 0; i + 1 < in.size(); ++i) all.push_back(matmul(in[i], in[i + 1]));
    return all;
  };
  const auto sum = [&](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{transpose(sum_of_halves(products(in)), 0, 1)};
  };
  const auto three = program_of(sum, some(4, DType::bf16)), four = program_of(sum, some(5, DType::bf16));
  EXPECT_EQ(steps_named(three, "matmul"), 3u);
  EXPECT_EQ(steps_named(three, "region"), 0u);
  EXPECT_EQ(steps_named(four, "region"), 1u) << "more of them are rounded once, after the sum in f32";

  const OnBackend on("native");
  const std::vector<Tensor> in = {drawn(1), drawn(2), drawn(3), drawn(4)};
  const auto got = compile(sum, some(4, DType::bf16))(in)[0].to_vector<double>();
  std::vector<Tensor> exact, sizes;
  for (const Tensor& x : in) exact.push_back(cast(x, DType::f64)), sizes.push_back(abs(exact.back()));
  const auto total = [&](const std::vector<Tensor>& of) {
    const auto p = products(of);
    return transpose(p[0] + p[1] + p[2], 0, 1).to_vector<double>();
  };
  const auto want = total(exact), most = total(sizes);
  for (size_t i = 0; i < want.size(); ++i)  // three roundings, of partial sums
    EXPECT_NEAR(got[i], want[i], 3 * 0x1p-8 * most[i]) << i;
}

}  // namespace
}  // namespace weft::testing::fusion_test
