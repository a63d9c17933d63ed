#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "compiler/compile.h"
#include "link/schedule.h"
#include "loops/loops.h"
#include "seam/registry.h"
#include "small_model.h"
#include "test_backends.h"
#include "weft/jit.h"
#include "weft/ledger.h"

// From the graph to a schedule: fusion, devices without a kernel for it, and memory.
namespace weft::testing::link_test {
namespace {

using link::BufferAllocation;

std::vector<LedgerRow> rows_on(const std::string& device) {
  auto rows = ledger_rows();
  std::erase_if(rows, [&](const LedgerRow& r) { return r.device != device; });
  return rows;
}

// ---- a region on a device that compiles text, and on one that does not ----

// The sum begins with b: no other test renders the same text, so the count of texts is this test's own.
std::vector<Tensor> mul_add_exp(const std::vector<Tensor>& in) { return {exp(in[2] + in[0] * in[1])}; }

std::vector<InputSpec> cubes() {
  const Dim n = Dim::symbol("n", 1, 64);
  const TensorType type = {DType::f32, {n, Dim(3), Dim(8)}};
  return {{"x", type}, {"w", type}, {"b", type}};
}
std::vector<Tensor> cube_values(int64_t n) {
  std::vector<Tensor> out;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const auto values = SmallModel::noise(static_cast<size_t>(n * 24), seed);
    const int64_t shape[] = {n, 3, 8};
    out.push_back(Tensor::of(std::span<const double>(values), shape, DType::f32));
  }
  return out;
}
std::vector<double> expected(const std::vector<Tensor>& in) {
  const auto x = in[0].to_vector<double>(), w = in[1].to_vector<double>(), b = in[2].to_vector<double>();
  std::vector<double> out;
  for (size_t i = 0; i < x.size(); ++i) out.push_back(std::exp(x[i] * w[i] + b[i]));
  return out;
}
void expect_near(const Tensor& got, const std::vector<double>& want) {
  const auto values = got.to_vector<double>();
  ASSERT_EQ(values.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(values[i], want[i], 1e-5) << i;
}

uint64_t arena_bytes(const std::string& plan) {
  const size_t at = plan.find("arena of ");
  return at == plan.npos ? 0 : std::stoull(plan.substr(plan.find(": ", at) + 2));
}

TEST(Region, IsOneCallOnADeviceThatCompilesAndOneTextForTwoShapes) {
  if (!is_backend_available("opencl")) GTEST_SKIP() << "opencl is not available here";
  auto program = compile(mul_add_exp, cubes(), {.backend = "opencl"});
  const uint64_t texts = loops::distinct_texts();
  reset_ledger();
  for (const int64_t n : {4, 16}) expect_near(program(cube_values(n))[0], expected(cube_values(n)));
  static uint64_t fresh = 1;  // where tests are repeated, the text is there already
  EXPECT_EQ(loops::distinct_texts() - texts, std::exchange(fresh, 0));
  const auto rows = rows_on("opencl");
  ASSERT_EQ(rows.size(), 1u) << ledger_text();
  EXPECT_EQ(rows[0].kernel, "loops.region.elementwise");
  EXPECT_EQ(rows[0].op, "region");
  EXPECT_EQ(rows[0].calls, 2u);
}

TEST(Region, IsExpandedWhereNoKernelTakesItAndTheLedgerSaysWhy) {
  WEFT_NEEDS_PLUGIN("far");
  auto program = compile(mul_add_exp, cubes(), {.backend = "far"});
  EXPECT_NE(program.text().find("region"), std::string::npos) << "the compiler fused: " << program.text();
  reset_ledger();
  for (const int64_t n : {4, 16}) expect_near(program(cube_values(n))[0], expected(cube_values(n)));
  std::vector<std::string> ops;
  for (const auto& r : rows_on("far")) {
    ops.push_back(r.op);
    EXPECT_EQ(r.calls, 2u) << r.op;
    EXPECT_EQ(r.why, "in the body of region: far: no kernel takes a region");
  }
  EXPECT_EQ(ops, (std::vector<std::string>{"add", "exp", "mul"}));
}

// The body reads a value again after another was made of it, so it needs room between its steps, and the
// region does not.
TEST(Region, ExpansionPlansItsMemoryAnew) {
  WEFT_NEEDS_PLUGIN("far");
  const auto function = [](const std::vector<Tensor>& in) {
    const auto t = in[2] + in[0] * in[1];
    return std::vector<Tensor>{t * exp(t), sum(in[0], {Dim(0)}, false)};
  };
  auto specs = cubes();
  specs[1].type.shape = specs[2].type.shape = Shape{8};
  const auto schedule_for = [&](const std::string& backend) {
    auto program = compile(function, specs, {.backend = backend});
    auto in = cube_values(16);
    in[1] = in[2] = Tensor::of({1, 2, 3, 4, 5, 6, 7, 8}, {8});
    (void)program(in);
    return program.schedule_text();
  };
  const auto expanded = schedule_for("far");
  std::printf("%s", expanded.c_str());
  const uint64_t large = 16 * 24 * 4;
  EXPECT_GE(arena_bytes(expanded), large);  // inputs and outputs are the caller's memory
  if (!is_backend_available("opencl")) GTEST_SKIP() << "opencl is not available here";
  const auto fused = schedule_for("opencl");
  std::printf("%s", fused.c_str());
  EXPECT_NE(fused.find("loops.region.elementwise"), std::string::npos) << fused;
  EXPECT_LT(arena_bytes(fused), large) << "one call needs no room in between";
}

// ---- memory ----

bool together(const BufferAllocation& a, const BufferAllocation& b) {
  return a.first_step <= b.last_step && b.first_step <= a.last_step;
}

TEST(PlanMemory, RandomLifetimesNeverOverlap) {
  WEFT_NEEDS_PLUGIN("far");
  seam::Device* devices[] = {value_or_raise(seam::registry().open("reference")),
                             value_or_raise(seam::registry().open("far"))};
  std::mt19937 random(3);
  for (int round = 0; round <= 60; ++round) {
    // The last round has so many that they are placed in the order of steps.
    std::vector<BufferAllocation> slots(round < 60 ? 1 + random() % 60 : 3 * link::kMostBySize);
    const uint32_t steps = round < 60 ? 40 : 2000;
    for (auto& s : slots) {
      s.device = random() % 2;
      s.type = {DType::u8, {static_cast<int64_t>(random() % (round % 2 ? 100 : 5000))}};
      s.first_step = random() % steps, s.last_step = s.first_step + random() % 10;
    }
    const auto sizes = link::plan_memory(slots, devices);
    ASSERT_EQ(sizes.size(), 2u);
    for (size_t i = 0; i < slots.size(); ++i) {
      const auto& a = slots[i];
      EXPECT_EQ(a.offset % std::max<uint64_t>(64, devices[a.device]->capability().offset_alignment), 0u);
      EXPECT_LE(a.offset + a.type.bytes(), sizes[a.device].bytes);
      for (size_t k = 0; k < i; ++k) {
        const auto& b = slots[k];
        if (a.device != b.device || !together(a, b) || !a.type.bytes() || !b.type.bytes()) continue;
        EXPECT_TRUE(a.offset + a.type.bytes() <= b.offset || b.offset + b.type.bytes() <= a.offset)
            << round << ": slots " << i << " and " << k;
      }
    }
    for (const auto& size : sizes) EXPECT_GE(size.bytes, size.live_peak) << round;
    if (round == 60) {
      for (const auto& size : sizes) EXPECT_LE(size.bytes, size.live_peak + size.live_peak / 4);
    }
  }
}

TEST(PlanMemory, AChainReusesItsRoom) {
  seam::Device* device = value_or_raise(seam::registry().open("reference"));
  std::vector<BufferAllocation> chain(50);
  for (uint32_t i = 0; i < chain.size(); ++i) {
    chain[i].type = {DType::f32, {256}};
    chain[i].first_step = i, chain[i].last_step = i + 1;
  }
  const auto sizes = link::plan_memory(chain, {&device, 1});
  EXPECT_EQ(sizes[0].live_peak, 2048u);
  EXPECT_EQ(sizes[0].bytes, 2048u);
}

// Steps 0 and 1 may run as a part of step 2, so what they read lives until then, where it is small.
TEST(PlanMemory, WhatAStepReadsStaysUntilTheStepThatItMayJoin) {
  seam::Device* device = value_or_raise(seam::registry().open("reference"));
  weft_kernel joins{}, alone{};
  joins.flags = WEFT_KERNEL_JOINS;
  link::Schedule schedule;
  schedule.devices = {device};
  for (int i = 0; i < 5; ++i) schedule.slots.emplace_back().type = {DType::f32, {i == 4 ? 1 << 20 : 8}};
  const weft_kernel* const kernels[] = {&joins, &joins, &alone, &alone};
  for (int32_t i = 0; i < 4; ++i) {
    link::Step& step = schedule.steps.emplace_back();
    step.prepared = std::make_shared<seam::PreparedKernel>(*device, *kernels[i], nullptr);
    step.inputs = {i}, step.outputs = {i + 1};
  }
  schedule.steps[0].inputs.push_back(4);
  schedule.steps[3].outputs.clear();
  link::set_lifetimes(schedule);
  const auto last = [&](size_t slot) { return schedule.slots[slot].last_step; };
  EXPECT_EQ(last(0), 3u);  // counted from 1
  EXPECT_EQ(last(1), 3u);
  EXPECT_EQ(last(2), 3u);
  EXPECT_EQ(last(3), 4u);
  EXPECT_EQ(last(4), 1u) << "too large to be kept";
}

// ---- passes ----

size_t ran(const std::string& op) {
  uint64_t n = 0;
  for (const auto& r : ledger_rows())
    if (r.op == op) n += r.calls;
  return n;
}

const std::vector<InputSpec> kFour = {{"x", {DType::f32, {4}}}};
Tensor four() { return Tensor::of({1, 2, 3, 4}, {4}); }

TEST(Passes, DeadNodesAreGone) {
  auto program = compile(
      [](const std::vector<Tensor>& in) {
        const auto dead = log(in[0] * in[0]);
        (void)(dead + dead);
        return std::vector<Tensor>{exp(in[0])};
      },
      kFour, {.fuse = false});
  reset_ledger();
  (void)program({four()});
  EXPECT_EQ(ran("exp"), 1u);
  for (const char* op : {"log", "mul", "add"}) EXPECT_EQ(ran(op), 0u) << op << "\n" << program.text();
}

TEST(Passes, EqualNodesAreOneAndUnequalOnesAreNot) {
  auto program = compile(
      [](const std::vector<Tensor>& in) {
        const auto a = exp(in[0]), b = exp(in[0]);
        return std::vector<Tensor>{a + b, sum(in[0], {Dim(0)}, false), sum(in[0], {Dim(0)}, true)};
      },
      kFour, {.fuse = false});
  reset_ledger();
  const auto out = program({four()});
  EXPECT_EQ(ran("exp"), 1u);
  EXPECT_EQ(ran("sum"), 2u) << "their attributes differ";
  EXPECT_EQ(out[2].sizes().size(), 1u);
  EXPECT_NEAR(out[0].to_vector<double>()[3], 2 * std::exp(4.0), 1e-4);
}

/// Reads a state, updates it, reads it again, and updates it once more with the same operands.
struct Counter {
  Tensor value = four().named("value"), mean = zero().named("mean"), square = zero().named("square");
  Tensor weight = Tensor::scalar(0).named("weight"), weight2 = Tensor::scalar(0).named("weight2");
  static Tensor zero() { return Tensor::of({0, 0, 0, 0}, {4}); }
  std::vector<Tensor> step(const std::vector<Tensor>& in) {
    const NoGrad no_grad;
    const auto rate = Tensor::scalar(0.5);
    const auto before = exp(value);
    adamw_step(value, in[0], mean, square, rate, weight, weight2);
    const auto between = exp(value);
    adamw_step(value, in[0], mean, square, rate, weight, weight2);
    return {before, between, exp(value)};
  }
};

TEST(Passes, NothingIsMergedAcrossAnUpdateOfAState) {
  for (const std::string backend : {"reference", "far"}) {
    WEFT_NEEDS_PLUGIN("far");
    const OnBackend on(backend);
    Counter eager, traced;
    auto program =
        compile([&](const std::vector<Tensor>& in) { return traced.step(in); }, kFour, {.backend = backend});
    for (int t = 0; t < 3; ++t) {
      const auto want = eager.step({four()}), got = program({four()});
      EXPECT_NE(want[0].to_bytes(), want[1].to_bytes());
      EXPECT_NE(want[1].to_bytes(), want[2].to_bytes());
      for (size_t k = 0; k < 3; ++k)
        EXPECT_EQ(got[k].to_bytes(), want[k].to_bytes()) << backend << " " << t << " " << k;
    }
    EXPECT_EQ(program.state("value").to_bytes(), eager.value.to_bytes());
  }
}

TEST(Passes, RandomNodesAreNeverMerged) {
  Tensor state = Tensor::of({7, 0}, {2}, DType::u64).named("random");
  const auto f = [&](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{dropout(in[0], state, 0.5), dropout(in[0], state, 0.5)};
  };
  const std::vector<double> ones(64, 1);
  const int64_t shape[] = {64};
  const auto x = Tensor::of(std::span<const double>(ones), shape, DType::f32);
  auto program = compile(f, {{"x", {DType::f32, {64}}}});
  const auto got = program({x}), want = f({x});
  EXPECT_NE(got[0].to_bytes(), got[1].to_bytes());
  EXPECT_EQ(got[0].to_bytes(), want[0].to_bytes());
  EXPECT_EQ(got[1].to_bytes(), want[1].to_bytes());
}

TEST(Fuse, IsDecidedByTheCompilerAndChangesNoBit) {
  std::vector<std::vector<std::byte>> results[2];
  for (const bool fuse : {false, true}) {
    SmallModel model;
    auto program = compile(model.function(), SmallModel::inputs(), {.fuse = fuse});
    EXPECT_EQ(program.text().find("elementwise") != std::string::npos, fuse);
    for (int t = 0; t < 5; ++t) results[fuse].push_back(program(SmallModel::batch(t, 6))[0].to_bytes());
    for (const auto& name : program.state_names()) results[fuse].push_back(program.state(name).to_bytes());
  }
  EXPECT_EQ(results[0], results[1]);
}

// gelu and relu are composites: opened up, they and their neighbours are one region, and no bit changes.
TEST(Fuse, CompositesJoinTheirNeighbours) {
  const auto function = [](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{relu(gelu(in[0] * in[1]) + in[2])};
  };
  auto fused = compile(function, cubes()), apart = compile(function, cubes(), {.fuse = false});
  EXPECT_NE(fused.text().find("@r0 elementwise("), std::string::npos) << fused.text();
  EXPECT_EQ(fused.text().find("@r1"), std::string::npos) << fused.text();
  EXPECT_NE(apart.text().find(" = relu@r"), std::string::npos) << apart.text();
  EXPECT_EQ(fused(cube_values(4))[0].to_bytes(), apart(cube_values(4))[0].to_bytes());
  if (!is_backend_available("opencl")) GTEST_SKIP() << "opencl is not available here";
  auto program = compile(function, cubes(), {.backend = "opencl"});
  reset_ledger();
  (void)program(cube_values(4));
  ASSERT_EQ(rows_on("opencl").size(), 1u) << ledger_text();
  EXPECT_EQ(rows_on("opencl")[0].kernel, "loops.region.elementwise");
}

TEST(Fuse, ACompositeAloneKeepsItsName) {
  const auto program = compile([](const std::vector<Tensor>& in) { return std::vector<Tensor>{relu(in[0])}; },
                               {{"x", {DType::f32, {4}}}});
  EXPECT_NE(program.text().find(" = relu@r"), std::string::npos) << program.text();
}

TEST(Fuse, APassSeesAGoodGraphOrItIsRefused) {
  ir::Graph broken;
  broken.output("y", broken.exp(broken.input("x", {DType::f32, {4}})));
  broken.types[1].shape = Shape{5};
  const auto program = compiler::compile(broken, {});
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.status().message().rfind("graph to compile: exp: result 0 is f32[5]", 0), 0u)
      << program.status().message();
}

}  // namespace
}  // namespace weft::testing::link_test
