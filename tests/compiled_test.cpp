#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "compiler/compile.h"
#include "seam/prepared_kernel.h"
#include "small_model.h"
#include "test_backends.h"
#include "weft/jit.h"
#include "weft/ledger.h"
#include "weft/ops.h"

// One model through every layer: eager, traced, compiled, written, read, linked, run: the same bits.
namespace weft::compiled_test {
namespace {

using testing::SmallModel;

std::vector<float> eager_losses(const std::string& backend, int steps, int64_t n) {
  const OnBackend on(backend);
  SmallModel model;
  std::vector<float> losses;
  auto step = model.function();
  for (int t = 0; t < steps; ++t) losses.push_back(step(SmallModel::batch(t, n))[0].to_vector<float>()[0]);
  return losses;
}

std::vector<float> compiled_losses(Compiled program, int steps, int64_t n) {
  std::vector<float> losses;
  for (int t = 0; t < steps; ++t) losses.push_back(program(SmallModel::batch(t, n))[0].to_vector<float>()[0]);
  return losses;
}

Compiled compile_small(const std::string& backend) {
  const OnBackend on(backend);
  SmallModel model;
  return compile(model.function(), SmallModel::inputs(), {.name = "small", .backend = backend});
}

TEST(Training, FiftyStepsLearnAndAreBitEqualOnReferenceAndFar) {
  const auto reference = eager_losses("reference", 50, 8);
  EXPECT_LT(reference.back(), 0.6f * reference.front());
  EXPECT_EQ(reference, eager_losses("reference", 50, 8));
  WEFT_NEEDS_PLUGIN("far");
  EXPECT_EQ(reference, eager_losses("far", 50, 8));
}

TEST(Training, CompiledStepIsBitEqualToEager) {
  for (const int64_t n : {8, 3})
    EXPECT_EQ(compiled_losses(compile_small("reference"), 50, n), eager_losses("reference", 50, n));
  WEFT_NEEDS_PLUGIN("far");
  EXPECT_EQ(compiled_losses(compile_small("far"), 50, 8), eager_losses("reference", 50, 8));
}

TEST(Training, OneProgramServesTwoBatchSizes) {
  // Alternating sizes: each keeps its own plan, both share the states.
  auto program = compile_small("reference");
  SmallModel model;
  auto eager = model.function();
  for (int t = 0; t < 20; ++t) {
    const auto in = SmallModel::batch(t, t % 2 ? 5 : 16);
    EXPECT_EQ(program(in)[0].to_bytes(), eager(in)[0].to_bytes()) << "step " << t;
  }
  for (const auto& p : model.parameters)
    EXPECT_EQ(program.state(p.value.name()).to_bytes(), p.value.to_bytes()) << p.value.name();
  EXPECT_EQ(program.state("random").to_bytes(), model.random.to_bytes());
}

TEST(Training, TwoSessionsOnTwoThreads) {
  const auto path = std::filesystem::temp_directory_path() / "weft_two_sessions.npubin";
  compile_small("reference").save(path);
  const auto expected = eager_losses("reference", 50, 8);
  for (const auto& backend : testing::backends({"reference", "far"})) {
    std::vector<float> losses[2];
    std::thread threads[2];
    for (int i = 0; i < 2; ++i)
      threads[i] = std::thread(
          [&, i] { losses[i] = compiled_losses(load_program(path, {.backend = backend}), 50, 8); });
    for (auto& t : threads) t.join();
    EXPECT_EQ(losses[0], expected) << backend;
    EXPECT_EQ(losses[1], expected) << backend;
  }
  std::filesystem::remove(path);
}

TEST(Training, TextFormAndFileKeepTheProgram) {
  SmallModel model;
  const Traced traced = trace(model.function(), SmallModel::inputs());
  EXPECT_EQ(traced.states.size(), 6 * 5 + 1u);
  EXPECT_NE(traced.text().find("\"hidden2.matmul\""), std::string::npos);
  // A trace changes nothing outside.
  EXPECT_FALSE(model.parameters[0].value.grad());
  EXPECT_EQ(model.random.to_vector<uint64_t>(), (std::vector<uint64_t>{1, 0}));
}

// What is saved is what runs: a program that was trained goes on from the file with its next loss.
TEST(Compiled, ATrainedProgramIsSavedAsItIs) {
  const auto path = (std::filesystem::temp_directory_path() / "weft_trained.npubin").string();
  for (const auto& backend : testing::backends({"reference", "native", "far"})) {
    Compiled program = compile_small(backend);
    const auto first = program.state("hidden1.weight").to_bytes();
    for (int t = 0; t < 3; ++t) (void)program(SmallModel::batch(t, 4));
    program.save(path);
    Compiled loaded = load_program(path, {.backend = backend});
    EXPECT_NE(loaded.state("hidden1.weight").to_bytes(), first) << backend;
    for (const auto& name : program.state_names())
      EXPECT_EQ(loaded.state(name).to_bytes(), program.state(name).to_bytes()) << backend << ' ' << name;
    const auto next = SmallModel::batch(3, 4);
    EXPECT_EQ(loaded(next)[0].to_bytes(), program(next)[0].to_bytes()) << backend;
    program.save(path);  // over the file that the other session still has mapped
    EXPECT_EQ(loaded.text(), load_program(path, {.backend = backend}).text());
  }
  std::filesystem::remove(path);
}

// A file with valid hashes may still contain anything: kernels would access memory by false types.
TEST(Compiled, AProgramThatLiesAboutItsOpsIsRefused) {
  const auto path = (std::filesystem::temp_directory_path() / "weft_lies.npubin").string();
  compile_small("reference").save(path);
  const auto honest = value_or_raise(program::read_file(path));
  EXPECT_TRUE(compiler::check_ops(honest).ok());
  const auto call_of = [](program::CompiledProgram& p, const char* op) -> program::KernelCall& {
    for (auto& c : p.calls)
      if (c.op == op) return c;
    throw std::logic_error(op);
  };
  const auto attr = [](program::KernelCall& c, const char* name) -> AttrValue& {
    for (auto& a : c.attrs)
      if (a.name == name) return a.value;
    throw std::logic_error(name);
  };
  using program::CompiledProgram;
  const std::pair<const char*, std::function<void(CompiledProgram&)>> lies[] = {
      {"the op's rule says",
       [&](CompiledProgram& p) {
         const auto result = static_cast<size_t>(call_of(p, "matmul").outputs[0]);
         p.values[result].type.shape[1] = 1 << 20;
       }},
      {"inner sizes",
       [&](CompiledProgram& p) {
         std::swap(call_of(p, "matmul").inputs[0], call_of(p, "matmul").inputs[1]);
       }},
      {"wrongly listed", [&](CompiledProgram& p) { attr(call_of(p, "matmul"), "transpose_b") = int64_t{1}; }},
      {"wrong kind", [&](CompiledProgram& p) { attr(call_of(p, "gather"), "axis") = 0.5; }},
      {"from the front",
       [&](CompiledProgram& p) {
         auto& c = call_of(p, "gather");
         attr(c, "axis") = int64_t{-2}, std::erase(c.defaults, "axis");
       }},
      {"no attribute named", [&](CompiledProgram& p) { call_of(p, "gather").attrs[0].name = "aaa"; }},
      {"version 7", [&](CompiledProgram& p) { call_of(p, "matmul").version = 7; }},
      {"operands", [&](CompiledProgram& p) { call_of(p, "matmul").inputs.pop_back(); }},
      {"no op of this name", [&](CompiledProgram& p) { call_of(p, "matmul").op = "matmul9"; }},
      {"no op of these names: gather7 (region @r",
       [&](CompiledProgram& p) {
         call_of(p, "matmul").op = "matmul9";
         for (auto& r : p.regions)
           for (auto& c : r.calls)
             if (c.op == "mul") c.op = "gather7";
       }},
      {"its body is missing", [&](CompiledProgram& p) { call_of(p, "matmul").op = "softmax"; }},
      {"updates", [&](CompiledProgram& p) { call_of(p, "adamw_step").updates.pop_back(); }},
      {"output 0: value %-1", [&](CompiledProgram& p) { call_of(p, "matmul").outputs[0] = -1; }},
      {"passed twice",
       [&](CompiledProgram& p) {
         auto& c = call_of(p, "adamw_step");
         c.inputs[1] = c.inputs[2];
       }},
      {"region @r0", [&](CompiledProgram& p) { p.regions[0].calls[0].version = 7; }},
  };
  for (const auto& [words, lie] : lies) {
    CompiledProgram p = honest;
    lie(p);
    Status s = compiler::check_ops(p);
    if (s.ok()) s = program::verify(p);
    EXPECT_NE(s.text().find(words), std::string::npos) << words << ": " << s.text();
  }
  CompiledProgram p = honest;
  call_of(p, "matmul").version = 7;
  ASSERT_TRUE(program::write_file(p, path).ok()) << "verify() knows no ops";
  EXPECT_THROW(load_program(path, {.backend = "reference"}), Error);
  std::filesystem::remove(path);
}

// All of them, and before any step has run: a step of the program would have moved its states.
TEST(Compiled, CallsThatNoBackendTakesAreListedAtOnce) {
  auto program = compile_small("reference");
  const auto before = program.state("hidden1.weight").to_bytes();
  const seam::Without some([](const weft_kernel& k) -> std::string {
    const std::string_view op = k.op;
    return op == "matmul" || op == "less" || op == "region" ? "left out here" : "";
  });
  try {
    (void)program(SmallModel::batch(0, 4));
    FAIL() << "it ran";
  } catch (const Error& e) {
    const std::string words = e.what();
    EXPECT_EQ(e.status().code(), Code::unsupported);
    EXPECT_NE(words.find(" different calls have no kernel\n"), std::string::npos) << words;
    EXPECT_NE(words.find("matmul on reference for (f32[4, "), std::string::npos) << words;
    EXPECT_NE(words.find("less on reference for "), std::string::npos) << words;
    EXPECT_NE(words.find("  reference.matmul.shared  left out here"), std::string::npos) << words;
    EXPECT_NE(words.find("node \""), std::string::npos) << words;
  }
  EXPECT_EQ(program.state("hidden1.weight").to_bytes(), before);
}

// Ops gain attributes with defaults and optional operands; an older file has neither.
TEST(Compiled, AProgramFromBeforeItsOpsGrewRuns) {
  const auto path = (std::filesystem::temp_directory_path() / "weft_older.npubin").string();
  compile_small("reference").save(path);
  auto p = value_or_raise(program::read_file(path));
  int older = 0;
  for (auto& call : p.calls) {
    if (call.op != "cross_entropy_with_grad") continue;
    auto& body = p.regions[static_cast<size_t>(call.region)];
    const auto weight = static_cast<program::ValueId>(call.inputs.size()) - 1;
    call.attrs.clear(), call.defaults.clear(), call.inputs.pop_back();
    body.values.erase(body.values.begin() + weight), --body.n_inputs;
    const auto renumber = [&](std::vector<program::ValueId>& ids) {
      for (auto& id : ids) id -= id > weight;
    };
    for (auto& step : body.calls) renumber(step.inputs), renumber(step.outputs);
    renumber(body.outputs), ++older;
  }
  EXPECT_EQ(older, 1);
  ASSERT_TRUE(program::write_file(p, path).ok());
  for (const char* backend : {"reference", "native"})
    EXPECT_EQ(compiled_losses(load_program(path, {.backend = backend}), 5, 8),
              compiled_losses(compile_small(backend), 5, 8))
        << backend;
  std::filesystem::remove(path);
}

TEST(Compiled, AnOptionalOperandMayBeAbsent) {
  const auto function = [](const std::vector<Tensor>& in) {
    Tensor x = in[0];
    x.requires_grad(true);
    const Tensor y = linear(x, in[1]);  // no bias
    sum(y).backward();
    return std::vector<Tensor>{y, x.grad()};
  };
  const Tensor x = Tensor::of({1, 2, 3, 4, 5, 6}, {3, 2}), weight = Tensor::of({1, -1, 2, 0}, {2, 2});
  for (const bool fuse : {false, true}) {
    auto program =
        compile(function, {{"x", {DType::f32, {Dim::symbol("n", 1, 8), 2}}}, {"w", {DType::f32, {2, 2}}}},
                {.fuse = fuse});
    const auto got = program({x, weight});
    EXPECT_EQ(got[0].to_vector<float>(), (std::vector<float>{-1, 2, -1, 6, -1, 10}));
    EXPECT_EQ(got[1].to_vector<float>(), (std::vector<float>{3, -1, 3, -1, 3, -1}));
  }
}

// Rows of cheap steps in one pass: swapped operands, numbers, tensors, broadcasts, every length around a
// vector.
TEST(Compiled, ARowOfStepsIsBitEqualToItsSteps) {
  const auto function = [](const std::vector<Tensor>& in) {
    const Tensor half = full(0.5, {}, DType::f32), row = in[0] * 1.5 + -0.25;
    const Tensor a = maximum(sub(half, row), in[1]);
    const Tensor b = minimum(mul(in[2], sub(a, in[0])), full(2, {}, DType::f32));
    return std::vector<Tensor>{relu(b + b), exp(a) + in[1] * 2.0 - in[2]};
  };
  const OnBackend on("native");
  auto program = compile(function, {{"x", {DType::f32, {2, Dim::symbol("n", 1, 2000)}}},
                                    {"y", {DType::f32, {2, Dim::symbol("n", 1, 2000)}}},
                                    {"z", {DType::f32, {2, 1}}}});
  for (const int64_t n : {1, 2, 7, 15, 16, 17, 31, 33, 63, 64, 65, 129, 500, 1024, 1037}) {
    const auto noise = [&](int64_t columns, uint64_t seed) {
      const auto values = SmallModel::noise(static_cast<size_t>(2 * columns), seed);
      const int64_t shape[] = {2, columns};
      return Tensor::of(std::span<const double>(values), shape, DType::f32);
    };
    const std::vector<Tensor> in = {noise(n, 1), noise(n, 2), noise(1, 3)};
    const auto got = program(in), want = function(in);
    for (size_t k = 0; k < got.size(); ++k)
      EXPECT_EQ(got[k].to_bytes(), want[k].to_bytes()) << n << ", " << k;
  }
}

// Results of this size bypass the caches: those of the last step of a chain, of a single step, and of tiles.
TEST(Compiled, LargeResultsAreBitEqualToSmallOnes) {
  const OnBackend on("native");
  constexpr int64_t kLarge = (int64_t{4} << 20) + 1037, kSmall = 1 << 20;
  const auto row = [](const Tensor& x) { return relu(full(0.5, {}, DType::f32) - (x * 1.5 + -0.25)); };
  const auto values = SmallModel::noise(static_cast<size_t>(kLarge), 5);
  const int64_t shape[] = {kLarge};
  const Tensor x = Tensor::of(std::span<const double>(values), shape, DType::f32);
  const std::function<std::vector<Tensor>(const std::vector<Tensor>&)> functions[] = {
      [&](const auto& in) { return std::vector<Tensor>{row(in[0])}; },
      [&](const auto& in) { return std::vector<Tensor>{exp(in[0])}; },
      [&](const auto& in) { return std::vector<Tensor>{row(in[0]), row(in[0]) * in[0]}; }};
  for (const auto& f : functions) {
    const auto large = compile(f, {{"x", {DType::f32, {kLarge}}}})({x});
    for (int64_t at = 0; at < kLarge; at += kSmall) {
      const int64_t end = std::min(kLarge, at + kSmall);
      const auto small = f({slice(x, 0, at, end)});
      for (size_t k = 0; k < large.size(); ++k)
        EXPECT_EQ(slice(large[k], 0, at, end).to_bytes(), small[k].to_bytes()) << at << ", " << k;
    }
  }
}

TEST(Training, OpenClAgreesWithinRounding) {
  if (!is_backend_available("opencl")) GTEST_SKIP() << "opencl is not available here";
  const auto reference = eager_losses("reference", 5, 8);
  const auto opencl = compiled_losses(compile_small("opencl"), 5, 8);
  for (size_t i = 0; i < reference.size(); ++i) EXPECT_NEAR(opencl[i], reference[i], 1e-4) << "step " << i;
}

}  // namespace
}  // namespace weft::compiled_test
