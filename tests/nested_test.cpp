#include <gtest/gtest.h>

#include <filesystem>

#include "compiler/compile.h"
#include "runtime/session.h"
#include "seam/flatten.h"
#include "seam/registry.h"
#include "small_model.h"
#include "test_backends.h"
#include "weft/jit.h"
#include "weft/ops.h"

// Nested bodies: how the compiler makes them, their limits in files, and their forms for kernels and the
// linker.
namespace weft::testing::nested_test {
namespace {

constexpr int64_t kWidth = 24;

std::vector<Tensor> noise(std::initializer_list<std::vector<int64_t>> shapes) {
  std::vector<Tensor> out;
  for (const auto& shape : shapes) {
    int64_t n = 1;
    for (const int64_t d : shape) n *= d;
    const auto values = SmallModel::noise(static_cast<size_t>(n), out.size() + 1);
    out.push_back(Tensor::of(std::span<const double>(values), shape, DType::f32));
  }
  return out;
}
const TensorType kRows{DType::f32, {Dim::symbol("n", 1, 64), Dim(kWidth)}};
const TensorType kWeight{DType::f32, {Dim(kWidth), Dim(kWidth)}};

struct Example {
  const char* name;
  const char* calls;   // what the program has
  const char* opened;  // and what a device without a kernel for it runs
  std::vector<Tensor> (*function)(const std::vector<Tensor>&);
};
// x, y: rows; v, w: weights.
const Example kExamples[] = {
    {"an activation", "linear_gelu", "linear gelu",
     [](const auto& in) { return std::vector{gelu(linear(in[0], in[2]))}; }},
    {"a chain", "linear_elementwise", "linear region",
     [](const auto& in) { return std::vector{exp(linear(in[0], in[2]) + in[1]) * in[1]}; }},
    {"one left factor", "linear_linear", "linear linear",
     [](const auto& in) { return std::vector{linear(in[0], in[2]), linear(in[0], in[3])}; }},
    {"a gate", "linear_linear_elementwise", "linear linear region",
     [](const auto& in) { return std::vector{silu(linear(in[0], in[2])) * linear(in[0], in[3])}; }},
    {"the product is a result too", "matmul_relu", "matmul region",
     [](const auto& in) {
       const Tensor y = matmul(in[0], in[2]);
       return std::vector{y, relu(y)};
     }},
    {"somebody between needs the product", "linear softmax add", "linear softmax add",
     [](const auto& in) {
       const Tensor y = linear(in[0], in[2]);
       return std::vector{softmax(y, -1) + y};
     }},
    {"views between products of one factor", "linear_linear reshape reshape mul", "linear linear mul",
     [](const auto& in) {
       const Tensor q = reshape(linear(in[0], in[2]), {in[0].dim(0), 2, kWidth / 2});
       const Tensor k = reshape(linear(in[0], in[3]), {in[0].dim(0), 2, kWidth / 2});
       return std::vector{q * k};
     }},
    {"a product through a view", "reshape reshape matmul_mul reshape", "matmul mul",
     [](const auto& in) {
       const Shape shape = {in[0].dim(0), 2, kWidth / 2};
       return std::vector{reshape(matmul(in[0], in[2]), shape) * reshape(in[1], shape)};
     }},
    {"a residual and its norm, which both go on", "add_layer_norm", "add_layer_norm",
     [](const auto& in) {
       const Tensor sum = in[0] + in[1];
       return std::vector{sum, layer_norm(sum, Tensor(), Tensor())};
     }},
    {"a chain and a softmax", "elementwise_softmax", "region softmax",
     [](const auto& in) { return std::vector{softmax(exp(in[0]) * in[1], -1)}; }},
    {"a sum of one operand has another form", "add layer_norm", "add layer_norm",
     [](const auto& in) { return std::vector{layer_norm(in[0] + in[0], Tensor(), Tensor())}; }},
    {"somebody between needs the sum", "add sum layer_norm", "add sum layer_norm",
     [](const auto& in) {
       const Tensor y = in[0] + in[1], total = sum(y);
       return std::vector{total, layer_norm(y, Tensor(), Tensor())};
     }},
    {"another shape", "linear sum add", "linear sum add",
     [](const auto& in) {
       const Tensor y = linear(in[0], in[2]);
       return std::vector{sum(y, {Dim(1)}, true) + in[1]};
     }},
};

Compiled compiled(const Example& e, const std::string& backend, bool fuse = true) {
  return compile(e.function, {{"x", kRows}, {"y", kRows}, {"v", kWeight}, {"w", kWeight}},
                 {.backend = backend, .fuse = fuse});
}
std::string calls_of(const program::CompiledProgram& p) {
  std::string s;
  for (const auto& call : p.calls) s += (s.empty() ? "" : " ") + call.op;
  return s;
}
program::CompiledProgram program_of(const Example& e) {
  const auto path =
      (std::filesystem::temp_directory_path() / fmt::format("weft_nested_{}", ::getpid())).string();
  compiled(e, "reference").save(path);
  auto p = value_or_raise(program::read_file(path));
  std::filesystem::remove(path);
  return p;
}

TEST(Nested, ProductsAndWhatBelongsToThemAreOneCall) {
  for (const Example& e : kExamples) EXPECT_EQ(calls_of(program_of(e)), e.calls) << e.name;
}

// The original calls run: with the same bits as without groups.
TEST(Nested, ADeviceWithoutAKernelForAGroupGetsItsCalls) {
  const auto in = noise({{9, kWidth}, {9, kWidth}, {kWidth, kWidth}, {kWidth, kWidth}});
  for (const Example& e : kExamples)
    for (const std::string backend : {"reference", "native"}) {
      auto whole = compiled(e, backend), parts = compiled(e, backend, false);
      const auto got = whole(in), want = parts(in);
      for (size_t k = 0; k < want.size(); ++k)
        EXPECT_EQ(got[k].to_vector<float>(), want[k].to_vector<float>()) << e.name << " on " << backend;
      if (backend == "reference") continue;  // has no kernel for linear, so that is opened too
      const std::string plan = whole.schedule_text();
      std::string from = "\n" + plan;
      size_t at = 0;
      std::istringstream ops(e.opened);
      for (std::string op; ops >> op;) {
        at = from.find(backend + "." + op, at);
        EXPECT_NE(at, std::string::npos) << e.name << ": no " << op << " in order in\n" << plan;
      }
    }
}

TEST(Nested, ADeviceThatCompilesTextRunsAGroupAtOnce) {
  if (!is_backend_available("opencl")) GTEST_SKIP() << "opencl is not available here";
  const auto in = noise({{40, kWidth}, {40, kWidth}, {kWidth, kWidth}, {kWidth, kWidth}});
  for (const Example& e : kExamples) {
    auto program = compiled(e, "opencl");
    const auto got = program(in), want = compiled(e, "reference")(in);
    for (size_t k = 0; k < want.size(); ++k) {
      const auto a = got[k].to_vector<float>(), b = want[k].to_vector<float>();
      ASSERT_EQ(a.size(), b.size());
      for (size_t i = 0; i < a.size(); ++i)
        ASSERT_NEAR(a[i], b[i], 1e-5 * (1 + std::abs(b[i]))) << e.name << ", element " << i;
    }
    const std::string plan = program.schedule_text(), calls = e.calls;
    EXPECT_EQ(std::ranges::count(plan, '\n') > 0, true);
    if (calls.find(' ') != calls.npos) continue;
    EXPECT_NE(plan.find("   0  loops.region.fused"), plan.npos) << e.name << "\n" << plan;
    EXPECT_EQ(plan.find("   1  "), plan.npos) << e.name << " is one call\n" << plan;
  }
}

TEST(Nested, AFileMayNestNoDeeperThanItSays) {
  const auto good = program_of(kExamples[0]);
  ASSERT_EQ(program::verify(good).text(), "ok");
  const auto outer = static_cast<size_t>(good.calls[0].region);
  const auto says = [&](const char* words, const std::function<void(program::CompiledProgram&)>& lie) {
    auto p = good;
    lie(p);
    EXPECT_NE(program::verify(p).text().find(words), std::string::npos) << program::verify(p).text();
  };
  auto& steps = good.regions[outer].calls;
  ASSERT_EQ(steps.size(), 2u);
  says("wanted one of the", [&](auto& p) { p.regions[outer].calls[0].region = static_cast<int32_t>(outer); });
  says("wanted one of the", [&](auto& p) { p.regions[outer].calls[0].region = 99; });
  says("wanted one of the", [&](auto& p) { p.regions[outer].calls[0].region = -2; });
  says("its region", [&](auto& p) { p.regions[outer].calls[0].region = steps[1].region; });
  // Each region is the one before, twice: 2^n steps in n regions.
  says("bodies within one another", [&](auto& p) {
    const auto& first = p.regions[static_cast<size_t>(steps[1].region)];
    program::Region r{
        .pattern = "twice", .n_inputs = 1, .values = {first.values[0]}, .calls = {}, .outputs = {2}};
    for (int32_t k = 0; k < 2; ++k) {
      r.values.push_back(first.values[0]);
      program::KernelCall c{.op = "twice", .inputs = {k}, .outputs = {k + 1}, .region = steps[1].region};
      r.calls.push_back(c);
    }
    for (int i = 0; i < 9; ++i) {
      p.regions.push_back(r);
      for (auto& c : r.calls) c.region = static_cast<int32_t>(p.regions.size()) - 1;
    }
  });
}

// Kernels see primitive steps alone. A step may leave an operand out, and hand one through.
TEST(Nested, AFlatBodyMeansTheSame) {
  const seam::ConcreteType t{DType::f32, {4}};
  const auto step = [&](const char* op, std::vector<uint32_t> in, std::vector<uint32_t> out) {
    seam::StepDesc s{{}, std::move(in), std::move(out)};
    s.call.op = op, s.call.inputs.assign(s.inputs.size(), t), s.call.outputs.assign(s.outputs.size(), t);
    return s;
  };
  // inner(a, b, c): d = neg(a); results d, b, d. c is left out.
  auto inner = std::make_shared<seam::RegionDesc>();
  inner->values = {t, t, t, t}, inner->n_inputs = 3;
  inner->steps = {step("neg", {0}, {3})}, inner->outputs = {3, 1, 3};
  seam::RegionDesc outer;
  outer.values = {t, t, t, t, t, t, t}, outer.n_inputs = 2;
  outer.steps = {step("exp", {0}, {2}), step("inner", {2, 1, UINT32_MAX}, {3, 4, 5}),
                 step("add", {4, 5}, {6})};
  outer.steps[1].call.region = inner;
  outer.outputs = {6, 3};
  EXPECT_TRUE(seam::nests(outer));
  const auto flat = seam::flatten(outer);
  EXPECT_FALSE(seam::nests(flat));
  ASSERT_EQ(flat.steps.size(), 3u);
  EXPECT_EQ(flat.values.size(), 5u);
  EXPECT_EQ(flat.steps[1].call.op, "neg");
  EXPECT_EQ(flat.steps[1].inputs, (std::vector<uint32_t>{2}));
  EXPECT_EQ(flat.steps[2].inputs, (std::vector<uint32_t>{1, 3}));
  EXPECT_EQ(flat.outputs, (std::vector<uint32_t>{4, 3}));
}

// A body that is too long for one kernel is opened, on devices that compile text too.
TEST(Nested, ABodyOfManyCallsIsOpened) {
  constexpr int32_t kCalls = 1500;
  const program::TensorSpec type{{DType::f32, {4}}, 0};
  program::CompiledProgram p;
  p.name = "chain";
  p.values = {type, type};
  p.calls = {{.op = "chain", .inputs = {0}, .outputs = {1}, .region = 0}};
  program::Region body{.pattern = "chain", .n_inputs = 1, .values = {type}, .outputs = {kCalls}};
  for (int32_t i = 0; i < kCalls; ++i) {
    body.values.push_back(type);
    body.calls.push_back({.op = "add", .inputs = {i, 0}, .outputs = {i + 1}});
  }
  p.regions = {body};
  p.inputs = {{"x", 0}};
  p.outputs = {{"y", 1}};
  const auto program = std::make_shared<const program::CompiledProgram>(std::move(p));
  const std::vector<float> x = {1, 2, 3, 4};
  runtime::HostTensor in{{DType::f32, {4}}, std::vector<std::byte>(sizeof(float) * 4)};
  std::memcpy(in.bytes.data(), x.data(), in.bytes.size());
  for (const auto& backend : testing::backends({"reference", "native", "opencl"})) {
    auto session = value_or_raise(
        runtime::Session::create(program, {value_or_raise(seam::registry().open(backend))}, Policy{}));
    const auto out = value_or_raise(session->run(std::vector{in}));
    for (size_t i = 0; i < 4; ++i) {
      float y = 0;
      std::memcpy(&y, out[0].bytes.data() + i * sizeof y, sizeof y);
      EXPECT_EQ(y, x[i] * (kCalls + 1)) << backend;
    }
  }
}

}  // namespace
}  // namespace weft::testing::nested_test
