#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "link/recipe.h"
#include "seam/registry.h"
#include "test_backends.h"
#include "weft/jit.h"
#include "weft/ledger.h"
#include "weft/ops.h"

// Recipes: calls that depend on constants alone run once.
namespace weft::recipe_test {
namespace {

constexpr int64_t kSide = 64;

Tensor drawn(const IntList& shape, const std::string& backend, float first = 0) {
  std::vector<float> v(static_cast<size_t>(element_count(std::span<const int64_t>(shape))));
  for (size_t i = 0; i < v.size(); ++i) v[i] = std::sin(first + static_cast<float>(i % 1009));
  return Tensor::of(std::span<const float>(v), shape, DType::f32, backend);
}

using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// A program in a file, without fusions, so that each op stays a call.
class File {
 public:
  explicit File(const Function& f, const Dim& rows = 4) {
    compile(f, {{"x", {DType::f32, {rows, kSide}}}}, {.backend = "reference", .fuse = false}).save(path_);
  }
  ~File() { std::filesystem::remove(path_); }
  File(const File&) = delete;
  Compiled load(const std::string& backend, const Policy& policy = {}) const {
    return load_program(path_, {.backend = backend, .policy = policy});
  }
  program::CompiledProgram read() const { return value_or_raise(program::read_file(path_)); }

 private:
  const std::string path_ =
      (std::filesystem::temp_directory_path() / fmt::format("weft_recipe_{}", ::getpid())).string();
};

std::vector<float> run(Compiled& program, const std::string& backend, int64_t rows = 4) {
  return program({drawn({rows, kSide}, backend, 7)})[0].to_vector<float>();
}

/// Launches of an op on a device since the ledger was reset.
uint64_t launches(const std::string& device, const std::string& op) {
  uint64_t n = 0;
  for (const auto& row : ledger_rows())
    if (row.device == device && row.op == op) n += row.calls;
  return n;
}

/// x times a weight that is turned and scaled.
Function scaled_product() {
  const Tensor w = drawn({kSide, kSide}, "reference"), scale = drawn({kSide, 1}, "reference", 3);
  return [=](const std::vector<Tensor>& in) {
    return std::vector{matmul(in[0], transpose(w, 0, 1) * exp(scale))};
  };
}

std::string ops_of(const program::CompiledProgram& p) {
  std::string s;
  for (const auto& call : p.calls) s += (s.empty() ? "" : " ") + call.op;
  return s;
}
std::optional<link::Recipe> split(const File& file) {
  const auto p = file.read();
  return link::split_recipe(p, std::vector<bool>(p.weights.size(), true));
}

TEST(Recipes, TakeWhatDependsOnConstantsAlone) {
  const File file(scaled_product());
  const auto parts = split(file);
  ASSERT_TRUE(parts);
  EXPECT_EQ(ops_of(parts->rest), "matmul");
  EXPECT_EQ(parts->recipe.calls.size(), 3u) << program::print(parts->recipe);
  EXPECT_TRUE(program::verify(parts->recipe).ok()) << program::verify(parts->recipe).text();
  const auto p = file.read();
  EXPECT_FALSE(link::split_recipe(p, std::vector<bool>(p.weights.size(), false)));
}

TEST(Recipes, RunOnceForAllSessions) {
  const File file(scaled_product());
  for (const auto& backend : testing::backends({"reference", "native", "far", "opencl"})) {
    SCOPED_TRACE(backend);
    reset_ledger();
    auto first = std::make_unique<Compiled>(file.load(backend));
    const auto want = run(*first, backend);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(run(*first, backend), want);
    Compiled second = file.load(backend);
    EXPECT_EQ(run(second, backend), want);
    first.reset();
    EXPECT_EQ(run(second, backend), want) << "what was made went with the session that made it";
    EXPECT_EQ(launches(backend, "matmul"), 6u);
    EXPECT_EQ(launches(backend, "mul"), 1u) << ledger_text();
    EXPECT_EQ(launches(backend, "exp"), 1u) << ledger_text();
  }
}

TEST(Recipes, GiveTheAnswersOfEagerCalls) {
  const Function f = scaled_product();
  const File file(f);
  const auto eager = f({drawn({4, kSide}, "reference", 7)})[0].to_vector<float>();
  Compiled program = file.load("reference");
  EXPECT_EQ(run(program, "reference"), eager);
}

// One that stays quantised, a view, and what depends on the input's size.
TEST(Recipes, LeaveWhatWouldGrowAndWhatIsNoStep) {
  const Tensor bytes = cast(drawn({kSide * 128, kSide}, "reference") * 100.0, DType::u8);
  EXPECT_FALSE(
      split(File([&](const auto& in) { return std::vector{linear(in[0], cast(bytes, DType::f32))}; })));
  const Tensor flat = drawn({kSide * kSide}, "reference");
  EXPECT_FALSE(
      split(File([&](const auto& in) { return std::vector{matmul(in[0], reshape(flat, {kSide, kSide}))}; })));
  // The view of what was made stays a view of it.
  const auto parts = split(
      File([&](const auto& in) { return std::vector{matmul(in[0], reshape(exp(flat), {kSide, kSide}))}; }));
  ASSERT_TRUE(parts);
  EXPECT_EQ(ops_of(parts->recipe), "exp");
  EXPECT_EQ(ops_of(parts->rest), "reshape matmul");
}

// A size that is told to a call as a number is no constant either.
TEST(Recipes, LeaveWhatDependsOnSizes) {
  const Dim rows = Dim::symbol("rows_of_recipe", 1, 64);
  const File file([&](const auto& in) { return std::vector{in[0] / full(1.0, {}, DType::f32, rows)}; }, rows);
  EXPECT_FALSE(split(file));
}

// Values that each run overwrites start anew in each run.
TEST(Recipes, LeaveWhatIsOverwritten) {
  const Tensor w = drawn({4, kSide}, "reference"), rate = Tensor::of({0.5}, {}),
               ones = drawn({4, kSide}, "reference");
  const File file([&](const auto& in) {
    Tensor moving = exp(w), moment = exp(ones);
    sgd_step(moving, moment, in[0], rate);
    return std::vector{moving + moment};
  });
  for (const auto& backend : testing::backends({"reference", "native", "far"})) {
    SCOPED_TRACE(backend);
    Compiled program = file.load(backend);
    const auto want = run(program, backend);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(run(program, backend), want);
  }
}

TEST(Recipes, AProgramMayBeConstantAltogether) {
  const Tensor w = drawn({kSide, kSide}, "reference");
  const File file([&](const auto& in) { return std::vector{exp(w), in[0] + in[0]}; });
  Compiled program = file.load("reference");
  const auto want = exp(w).to_vector<float>();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(run(program, "reference"), want);
}

// good_plain_c adds; all else goes to reference, and what the recipe made there comes back and goes again.
TEST(Recipes, WhatIsMadeIsReadOnOtherDevicesToo) {
  WEFT_NEEDS_PLUGIN("good_plain_c");
  const Tensor w = drawn({4, kSide}, "reference");
  const Function f = [&](const std::vector<Tensor>& in) { return std::vector{(in[0] + exp(w)) * exp(w)}; };
  const File file(f);
  Compiled program = file.load("good_plain_c,reference", {.fallback = Fallback::allow});
  const auto want = f({drawn({4, kSide}, "reference", 7)})[0].to_vector<float>();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(run(program, "reference"), want);
}

}  // namespace
}  // namespace weft::recipe_test
