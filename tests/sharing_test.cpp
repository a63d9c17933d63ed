#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <random>

#include "compiler/compile.h"
#include "conformance/graphs/run.h"
#include "conformance/seam/wrapped.h"
#include "link/lanes.h"
#include "link/schedule.h"
#include "seam/builtin.h"
#include "seam/registry.h"
#include "test_backends.h"
#include "weft/jit.h"
#include "weft/models.h"
#include "weft/nn.h"
#include "weft/ops.h"
#include "weft/optim.h"

// Values of a linked program that share memory: in place, as views, in pieces, and in sequence.
namespace weft::testing::sharing_test {
namespace {

using link::BufferAllocation;
using link::Schedule;
using link::Sharing;

std::vector<InputSpec> two(Shape shape) { return {{"x", {DType::f32, shape}}, {"y", {DType::f32, shape}}}; }

/// The program of a function that captures nothing. Nothing is fused.
program::CompiledProgram program_of(const TracedFunction& function, const Shape& shape) {
  return value_or_raise(
      compiler::compile(*trace(function, two(shape)).graph, {}, {.name = "f", .fuse = false}));
}
Schedule plan_of(const program::CompiledProgram& program, const std::string& backend,
                 Sharing sharing = Sharing::all) {
  seam::Device* devices[] = {value_or_raise(seam::registry().open(backend))};
  Bindings least;
  for (const auto& s : program.symbols) raise_if(least.bind(s.name, s.min));
  auto plan = value_or_raise(link::link(program, least, devices, Policy{}, {}, sharing));
  raise_if(link::check_dependencies(plan));
  return plan;
}
Schedule plan_of(const TracedFunction& function, const std::string& backend, Sharing sharing = Sharing::all,
                 const Shape& shape = {64}) {
  return plan_of(program_of(function, shape), backend, sharing);
}

/// The same numbers from a session that shares memory, and eagerly.
void expect_right(const TracedFunction& function, const Shape& shape, const std::string& backend) {
  const OnBackend on(backend);
  auto program = compile(function, two(shape), {.backend = backend, .fuse = false});
  IntList sizes;
  for (const Dim& d : shape) sizes.push_back(d.value());
  std::vector<double> numbers(static_cast<size_t>(element_count(std::span<const int64_t>(sizes))));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::sin(static_cast<double>(i));
  const auto x = Tensor::of(std::span<const double>(numbers), sizes, DType::f32);
  std::ranges::reverse(numbers);
  const auto y = Tensor::of(std::span<const double>(numbers), sizes, DType::f32);
  const auto want = function({x, y});
  for (int run = 0; run < 3; ++run) {
    const auto got = program({x, y});
    for (size_t k = 0; k < want.size(); ++k)
      EXPECT_EQ(got[k].to_bytes(), want[k].to_bytes()) << backend << ", result " << k << ", run " << run;
  }
}

size_t steps_named(const Schedule& plan, std::string_view op) {
  return static_cast<size_t>(std::ranges::count_if(plan.steps, [&](const link::Step& s) {
    return op == (s.prepared ? std::string_view(s.prepared->call->desc().op) : "copy");
  }));
}

// ---- in place

TEST(InPlace, AResultTakesTheMemoryOfAnOperandThatIsNotReadAnyMore) {
  const auto chain = [](const std::vector<Tensor>& in) {
    const auto a = in[0] * in[1], b = a + in[1], c = exp(b);
    return std::vector<Tensor>{sum(c, {Dim(0)}, false)};
  };
  const auto plan = plan_of(chain, "reference"), apart = plan_of(chain, "reference", Sharing::none);
  EXPECT_EQ(plan.arenas[0].bytes, 256u) << link::print(plan);
  EXPECT_EQ(apart.arenas[0].bytes, 512u) << link::print(apart);
  EXPECT_TRUE(link::check_dependencies(plan).ok());

  const auto read_twice = [](const std::vector<Tensor>& in) {
    const auto a = in[0] * in[1], b = a + in[1];
    return std::vector<Tensor>{sum(a * b, {Dim(0)}, false)};
  };
  EXPECT_EQ(plan_of(read_twice, "reference").arenas[0].bytes, 512u) << "a is still read";
  const auto twice_at_once = [](const std::vector<Tensor>& in) {
    const auto a = in[0] * in[1];
    return std::vector<Tensor>{sum(a * a, {Dim(0)}, false)};
  };
  EXPECT_EQ(plan_of(twice_at_once, "reference").arenas[0].bytes, 512u) << "a is two operands";
}

// The checker knows of values, not only of bytes: who reads what was there before is refused, and so is a
// write over an operand that the kernel was not asked for.
TEST(InPlace, TheCheckerRefusesAWriteOverWhatIsStillRead) {
  const auto chain = [](const std::vector<Tensor>& in) {
    const auto a = in[0] * in[1], b = a + in[1], c = b * in[0];
    return std::vector<Tensor>{exp(c)};
  };
  Schedule plan = plan_of(chain, "reference");
  ASSERT_EQ(plan.steps.size(), 4u) << link::print(plan);
  ASSERT_TRUE(link::check_dependencies(plan).ok());
  const int32_t a = plan.steps[1].inputs[0];
  ASSERT_EQ(plan.steps[1].prepared->call->desc().updates.size(), 1u);
  Schedule late = plan;
  late.steps[2].inputs[0] = a;  // b lies there by then
  const Status read = link::check_dependencies(late);
  EXPECT_NE(read.text().find("and 0 of its 256 bytes are what was written there"), std::string::npos)
      << read.text();

  Schedule unasked = plan_of(chain, "reference", Sharing::none);
  auto& step = unasked.steps[1];
  unasked.slots[static_cast<size_t>(step.outputs[0])].offset =
      unasked.slots[static_cast<size_t>(step.inputs[0])].offset;
  link::set_dependencies(unasked);
  const Status written = link::check_dependencies(unasked);
  EXPECT_NE(written.text().find("which it touches too"), std::string::npos) << written.text();
}

// ---- views and pieces

TEST(Views, APartAlongTheFirstAxisIsNoStep) {
  const auto parts = [](const std::vector<Tensor>& in) {
    const auto a = in[0] * in[1];
    return std::vector<Tensor>{exp(slice(a, 0, 0, 16)) + exp(slice(a, 0, 16, 32))};
  };
  EXPECT_EQ(steps_named(plan_of(parts, "reference", Sharing::all, {32, 4}), "slice"), 0u);
  EXPECT_EQ(steps_named(plan_of(parts, "reference", Sharing::all, {32, 3}), "slice"), 0u);
  const auto odd = [](const std::vector<Tensor>& in) {
    const auto a = in[0] * in[1];
    return std::vector<Tensor>{exp(slice(a, 0, 1, 17)), exp(slice(a, 1, 0, 1))};
  };
  EXPECT_EQ(steps_named(plan_of(odd, "reference", Sharing::all, {32, 4}), "slice"), 2u)
      << "the one begins at byte 16, the other lies in pieces";
  for (const std::string backend : {"reference", "far"}) {
    WEFT_NEEDS_PLUGIN("far");
    expect_right(parts, {32, 4}, backend);
    expect_right(odd, {32, 4}, backend);
  }
}

TEST(Views, WhatIsJoinedIsMadeInPlace) {
  const auto join = [](const std::vector<Tensor>& in) {
    const auto a = in[0] * in[1], b = exp(in[0]);
    return std::vector<Tensor>{concat(a, b) * concat(b, in[1]), b};
  };
  const auto join_once = [](const std::vector<Tensor>& in) {
    const auto whole = concat(in[0] * in[1], exp(in[0]));
    return std::vector<Tensor>{exp(whole), slice(whole, 0, 8, 24)};
  };
  const auto plan = plan_of(join_once, "reference", Sharing::all, {16, 4});
  EXPECT_EQ(steps_named(plan, "concat"), 0u) << link::print(plan);
  EXPECT_EQ(steps_named(plan_of(join, "reference", Sharing::all, {16, 4}), "concat"), 2u)
      << "b is in both, and an output, and an input is the caller's memory";
  for (const std::string backend : {"reference", "far"}) {
    WEFT_NEEDS_PLUGIN("far");
    expect_right(join, {16, 4}, backend);
    expect_right(join_once, {16, 4}, backend);
  }
}

// ---- sums

TEST(Sums, ProductsAreAddedToWhatIsThere) {
  const auto sum_of_three = [](const std::vector<Tensor>& in) {
    const auto a = matmul(in[0], in[1]), b = matmul(in[1], in[0]), c = matmul(in[1], in[1]);
    return std::vector<Tensor>{exp(a + b + c)};
  };
  const auto plan = plan_of(sum_of_three, "reference", Sharing::all, {16, 16});
  EXPECT_EQ(steps_named(plan, "matmul"), 3u);
  EXPECT_LT(steps_named(plan, "add"), 2u) << link::print(plan);
  EXPECT_LT(plan.arenas[0].bytes,
            plan_of(sum_of_three, "reference", Sharing::none, {16, 16}).arenas[0].bytes);
  const auto joined = [](const std::vector<Tensor>& in) {
    const auto sum = matmul(in[0], in[1]) + matmul(in[1], in[0]);
    return std::vector<Tensor>{exp(concat(sum, in[0] * in[1]))};
  };
  EXPECT_EQ(steps_named(plan_of(joined, "reference", Sharing::all, {16, 16}), "add"), 1u) << "it is a piece";
  expect_right(sum_of_three, {16, 16}, "reference");
  expect_right(joined, {16, 16}, "reference");
  auto late = plan;  // the sum begins with another value than it should
  for (auto& step : late.steps)
    if (!step.onto.empty()) step.onto[0] = late.steps[0].inputs[0];
  EXPECT_FALSE(link::check_dependencies(late).ok());
}

// ---- lanes

// Steps in different lanes may run concurrently. Only their reads, or a common lane, order two steps, not
// that they got the same memory.
TEST(Lanes, MemoryMakesNoStepWaitForAnotherLane) {
  WEFT_NEEDS_PLUGIN("far");
  size_t wide = 0, given_up = 0;
  const auto check = [&](Schedule plan) {
    if (plan.lanes == 1) {
      link::set_dependencies(plan, link::Conflicts::values);
      given_up += link::Lanes(plan).count() > 1;
      return;
    }
    ++wide;
    Schedule by_values = plan;
    link::set_dependencies(by_values, link::Conflicts::values);
    const link::Lanes lanes(by_values);
    for (uint32_t i = 0; i < plan.steps.size(); ++i)
      for (const uint32_t earlier : plan.steps[i].after)
        EXPECT_TRUE(lanes.comes_before(earlier, i)) << earlier << " before " << i << "\n"
                                                    << link::print(plan);
  };
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const auto graph = conformance::random_graph(seed);
    check(plan_of(*value_or_raise(conformance::compile_graph_case(graph)), "far"));
  }
  std::printf("[lanes] %zu plans of several lanes, %zu given up for their memory\n", wide, given_up);
  EXPECT_GT(wide, 20u);

  // Two chains that meet at the end: their memory is apart, though one after the other would need half of it.
  const auto chains = [](const std::vector<Tensor>& in) {
    Tensor a = exp(in[0]), b = exp(in[1]);
    for (int i = 0; i < 4; ++i) a = matmul(a, a);
    for (int i = 0; i < 4; ++i) b = matmul(b, b);
    return std::vector<Tensor>{a + b};
  };
  const auto plan = plan_of(chains, "far", Sharing::all, {16, 16});
  EXPECT_GT(plan.lanes, 1u);
  check(plan);
  EXPECT_EQ(plan_of(chains, "reference", Sharing::all, {16, 16}).lanes, 1u) << "it runs one after the other";
}

// ---- poison

/// After the last use of a value, its bytes become 255: who reads them later reads NaN.
void poison_the_dead(Schedule& plan) {
  if (plan.steps.empty() || plan.arenas[0].bytes == 0) return;
  using Kind = BufferAllocation::Kind;
  const auto bytes_at = [&](uint64_t offset, uint64_t bytes) {
    plan.slots.push_back(
        {.kind = Kind::arena, .offset = offset, .type = {DType::u8, {static_cast<int64_t>(bytes)}}});
    return static_cast<int32_t>(plan.slots.size()) - 1;
  };
  const uint64_t poison = plan.arenas[0].bytes;  // behind all else; nobody writes there
  uint64_t most = 0;
  const auto slots = plan.slots;
  std::vector<link::Step> steps;
  for (uint32_t i = 0; i < plan.steps.size(); ++i) {
    steps.push_back(plan.steps[i]);
    for (const auto& slot : slots) {
      const uint64_t bytes = slot.type.bytes();
      if (slot.kind != Kind::arena || slot.same_as >= 0 || slot.last_step != i + 1 || bytes == 0) continue;
      steps.push_back({.inputs = {bytes_at(poison, bytes)}, .outputs = {bytes_at(slot.offset, bytes)}});
      most = std::max(most, bytes);
    }
  }
  plan.arenas[0].bytes += (most + 63) / 64 * 64;
  plan.steps = std::move(steps);
}

/// far, whose memory is full of 255 when it is new, without sequences: the dead are poisoned in their turn.
std::string far_in_turn() {
  (void)load_plugin("far");
  const std::string name = "far_in_turn";
  if (!is_backend_available(name))
    conformance::adopt(
        *new conformance::Wrapped(name, value_or_raise(seam::registry().open("far"))->backend()));
  return name;
}

TEST(Poison, RandomGraphsAgreeWhereTheDeadArePoisoned) {
  WEFT_NEEDS_PLUGIN("far");
  const auto run = conformance::random_graphs(
      far_in_turn(), {.count = 80, .most_findings = 1, .spoil = poison_the_dead, .progress = nullptr});
  EXPECT_TRUE(run.ok()) << run.failures[0].reason << "\n" << run.failures[0].smallest;
  std::printf("[poison] %lld graphs\n", static_cast<long long>(run.run));
}

/// Memory is taken again one step too early.
void reuse_too_early(Schedule& plan) {
  const auto right = plan.slots;
  for (auto& slot : plan.slots)
    if (is_float(slot.type.dtype) && slot.last_step > slot.first_step) --slot.last_step;
  plan.arenas = link::plan_memory(plan.slots, plan.devices);
  for (size_t i = 0; i < right.size(); ++i) plan.slots[i].last_step = right[i].last_step;
}

TEST(Poison, MemoryThatIsTakenTooEarlyIsFound) {
  WEFT_NEEDS_PLUGIN("far");
  const auto found = [](const std::string& backend, const conformance::SpoilPlan& spoil) {
    return conformance::random_graphs(backend,
                                      {.count = 60, .most_findings = 0, .spoil = spoil, .progress = nullptr})
        .failed;
  };
  EXPECT_GT(found(far_in_turn(), reuse_too_early), 5) << "by what comes out";
  size_t refused = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    auto plan =
        plan_of(*value_or_raise(conformance::compile_graph_case(conformance::random_graph(seed))), "far");
    reuse_too_early(plan);
    link::set_dependencies(plan);
    refused += !link::check_dependencies(plan).ok();
  }
  EXPECT_GT(refused, 5u) << "by the checker";
}

// ---- a training step

program::CompiledProgram training_step() {
  nn::GPT model({.vocabulary = 65, .context = 64, .layers = 4, .heads = 4, .width = 128});
  nn::build(model, {.seed = 7});
  nn::AdamW adam(nn::parameters(model), {});
  const Shape tokens{12, 64};
  auto program = compile(
      [&](const std::vector<Tensor>& in) -> std::vector<Tensor> {
        return {nn::train_step([&](const Tensor& x) { return model(x); }, adam, {in[0], in[1]}, in[2])};
      },
      {{"input", {DType::i32, tokens}}, {"target", {DType::i32, tokens}}, {"rate", {DType::f32, {}}}},
      {.backend = "native"});
  const auto path = std::filesystem::temp_directory_path() / ("weft_step_" + std::to_string(::getpid()));
  program.save(path);
  auto read = value_or_raise(compiler::read_file(path));
  std::filesystem::remove(path);
  return read;
}

TEST(TrainingArena, IsSmallerWhereMemoryIsSharedAndAsSmallAsItsLiveValues) {
  if (!is_backend_available("native")) GTEST_SKIP() << "native is not available here";
  const auto program = training_step();
  const auto shared = plan_of(program, "native"), apart = plan_of(program, "native", Sharing::none);
  const auto [bytes, live] = shared.arenas[0];
  std::printf("[arena] GPT 4 x 128: %.2f MB, %.2f MB live at once; without sharing %.2f and %.2f MB\n",
              1e-6 * static_cast<double>(bytes), 1e-6 * static_cast<double>(live),
              1e-6 * static_cast<double>(apart.arenas[0].bytes),
              1e-6 * static_cast<double>(apart.arenas[0].live_peak));
  EXPECT_LT(bytes, apart.arenas[0].bytes);
  EXPECT_LE(bytes, live + live / 100);
  EXPECT_LT(shared.steps.size(), apart.steps.size());
  if (load_plugin("far")) {
    const auto far = plan_of(program, "far");
    std::printf("[arena] on far, %u lanes: %.2f MB\n", far.lanes,
                1e-6 * static_cast<double>(far.arenas[0].bytes));
  }
}

}  // namespace
}  // namespace weft::testing::sharing_test
