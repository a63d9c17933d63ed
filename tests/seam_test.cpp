#include <gtest/gtest.h>

#include "base/log.h"
#include "conformance/seam/rig.h"
#include "eager/apply.h"
#include "seam_watchers.h"
#include "small_model.h"
#include "test_backends.h"
#include "weft/jit.h"
#include "weft/ledger.h"
#include "weft/policy_scope.h"

// The choice of kernels, refusals and their messages, and a ledger that reports what really happened.
namespace weft::testing::seam_test {
namespace {

using namespace conformance;

Tensor pair_of(double a, double b) { return Tensor::of({a, b}, {2}); }

uint64_t ledger_calls(const std::string& device, const std::string& op) {
  uint64_t n = 0;
  for (const auto& r : ledger_rows())
    if (r.device == device && r.op == op) n += r.calls;
  return n;
}

// ---- selection ----

TEST(Select, ARefusalListsEveryAnswerAndWhatToDo) {
  const OnBackend on(picky().name());
  EXPECT_EQ(error_of([] { (void)exp(pair_of(1, 2)); }),
            "unsupported: exp on watch_picky for (f32[2])\n"
            "  watch_picky.exp.shared  not on a Sunday\n"
            "  decomposition           none: a primitive op\n"
            "  hint: allow another device with --policy warn, or choose another backend");
}

TEST(Select, WithoutDecompositionACompositeIsRefused) {
  const PolicyScope kernels_only(Policy{.decompose = false});
  EXPECT_EQ(error_of([] { (void)softmax(Tensor::of({1, 2, 3, 4}, {2, 2}), 0); }),
            "unsupported: softmax on reference for (f32[2, 2], axis=0)\n"
            "  reference      no kernel is named softmax\n"
            "  decomposition  disabled by Policy::decompose\n"
            "  hint: allow another device with --policy warn, or choose another backend");
  EXPECT_EQ((pair_of(1, 2) + pair_of(1, 1)).to_vector<float>(), (std::vector<float>{2, 3}))
      << "primitives stay";
}

TEST(Select, TheFirstThatAcceptsRunsAndTheLedgerSaysWhoWasAskedBefore) {
  WEFT_NEEDS_PLUGIN("template");
  Rig rig("template");
  const auto x = counting({2, 3});
  const auto flat = rig.plan(value_or_raise(describe({"add", {x, x}})));
  EXPECT_STREQ(flat.value()->kernel.id, "template.add.flat");
  EXPECT_EQ(flat.value()->why, "");
  const auto wide = rig.plan(value_or_raise(describe({"add", {x, counting({3})}})));
  EXPECT_STREQ(wide.value()->kernel.id, "template.add.shared");
  EXPECT_EQ(wide.value()->why.rfind("template.add.flat: ", 0), 0u) << wide.value()->why;
}

TEST(Select, AnAttributeThatARecordDoesNotListIsRefusedBeforeItIsAsked) {
  Rig rig(forgetful().name());
  const auto x = counting({2, 2});
  const uint64_t asked = forgetful().asked;
  EXPECT_TRUE(rig.run({"matmul", {x, x}}).ok()) << "at its default the call is as it always was";
  EXPECT_EQ(forgetful().asked, asked + 1);
  const auto refused = rig.run({"matmul", {x, x}, {{"transpose_b", int64_t{1}}}});
  EXPECT_EQ(refused.status().message().rfind(
                "matmul on watch_forgetful for (f32[2, 2], f32[2, 2], transpose_b=1)\n"
                "  watch_forgetful.matmul.shared  does not read attribute transpose_b\n",
                0),
            0u)
      << refused.status().message();
  EXPECT_EQ(forgetful().asked, asked + 1) << "refused by construction";
}

TEST(Select, ALevelOfDeterminismThatNoneGivesIsAnError) {
  const auto x = pair_of(1, 2);
  const Policy asked{.determinism = WEFT_DETERMINISM_DEVICES};
  const PolicyScope strict(asked);
  const char* words = "determinism level 4 is wanted, it gives 3";
  EXPECT_NE(error_of([&] { (void)exp(x); }).find(words), std::string::npos);
  const auto of_one = [](const std::vector<Tensor>& in) { return std::vector<Tensor>{exp(in[0])}; };
  auto compiled = compile(of_one, {{"x", x.type()}}, {.policy = asked});
  EXPECT_NE(error_of([&] { (void)compiled({x}); }).find(words), std::string::npos) << "as it is linked";
  EXPECT_EQ((x + x).to_vector<float>(), (std::vector<float>{2, 4})) << "a sum is rounded once: it gives 4";
}

TEST(Select, ALevelOfDeterminismPassesTheFasterKernelBy) {
  if (!is_backend_available("native")) GTEST_SKIP() << "native is not built in";
  const OnBackend on("native");
  const auto x = Tensor::of({1, 2, 3, 4}, {2, 2});
  const auto served = [&](uint8_t level) {
    const PolicyScope scope(Policy{.determinism = level});
    reset_ledger();
    EXPECT_EQ(matmul(x, x).to_vector<float>(), (std::vector<float>{7, 10, 15, 22}));
    for (const auto& r : ledger_rows())
      if (r.op == "matmul" && r.calls) return r.kernel + ": " + r.why;
    return std::string("nothing");
  };
  EXPECT_EQ(served(WEFT_DETERMINISM_RUN), "native.matmul.packed: ");
  EXPECT_EQ(served(WEFT_DETERMINISM_BATCH),
            "native.matmul.shared: native.matmul.packed: determinism level 2 is wanted, it gives 1");
}

TEST(Select, OperandsOnTwoDevicesAreAnErrorThatSaysHowToMoveOne) {
  WEFT_NEEDS_PLUGIN("far");
  const auto here = pair_of(1, 2), there = here.to("far");
  EXPECT_NE(error_of([&] {
              (void)(here + there);
            }).find("operands are on reference and far; move one with .to(...)"),
            std::string::npos);
}

// ---- policy ----

/// Copies of the ledger between this device and others, both ways.
LedgerRow copies(const std::string& from, const std::string& to) {
  LedgerRow sum;
  for (const auto& r : ledger_rows()) {
    if (r.op != "copy") continue;
    const bool left = !from.empty() && r.device.rfind(from + " -> ", 0) == 0;
    const bool arrived = !to.empty() && r.device.ends_with(" -> " + to);
    if (left || arrived) sum.calls += r.calls, sum.bytes += r.bytes;
  }
  return sum;
}

TEST(Fallback, EagerAllowRunsElsewhereWithEveryByteInTheLedger) {
  const OnBackend on(picky().name());
  const auto x = pair_of(1, 2);
  EXPECT_NE(error_of([&] { (void)exp(x); }).find("not on a Sunday"), std::string::npos)
      << "forbid is the default";
  const PolicyScope allow(Policy{.fallback = Fallback::allow});
  reset_ledger();
  picky().reset();
  const auto y = exp(x);
  EXPECT_EQ(y.backend(), picky().name()) << "the result comes home";
  EXPECT_EQ(picky().bytes_out, 8u);
  EXPECT_EQ(picky().bytes_in, 8u);
  EXPECT_EQ(copies(picky().name(), "").bytes, picky().bytes_out);
  EXPECT_EQ(copies("", picky().name()).bytes, picky().bytes_in);
  EXPECT_EQ(picky().launches["exp"], 0u);
  EXPECT_EQ(ledger_calls(picky().name(), "exp"), 0u);
  const auto got = y.to_vector<double>();
  EXPECT_NEAR(got[0], std::exp(1.0), 1e-5);
  EXPECT_NEAR(got[1], std::exp(2.0), 1e-5);
}

std::atomic<int> warnings{0};

TEST(Fallback, EagerWarnSaysSoOnceForEachSignature) {
  const OnBackend on(picky().name());
  const PolicyScope warn_me(Policy{.fallback = Fallback::warn});
  eager::clear_call_cache();
  warnings = 0;
  set_log_sink([](LogLevel level, std::string_view text) {
    if (level == LogLevel::warning && text.find("exp runs on ") != text.npos) ++warnings;
  });
  const int64_t shape[] = {3, 3};
  const auto x = Tensor::of(std::span<const double>(std::vector<double>(9, 1)), shape, DType::f32);
  for (int i = 0; i < 5; ++i) (void)exp(x);
  set_log_sink(nullptr);
  EXPECT_EQ(warnings, 1);
}

std::vector<Tensor> with_exp(const std::vector<Tensor>& in) {
  const Scope scope("block");
  return {exp(in[0] * in[0]) + in[0]};
}
const std::vector<InputSpec> kPair = {{"x", {DType::f32, {2}}}};

TEST(Fallback, ASessionForbidsWithEveryRefusalAndTheNode) {
  for (const bool fuse : {false, true}) {
    const auto text = error_of([&] {
      const OnBackend on(picky().name());
      (void)compile(with_exp, kPair, {.backend = picky().name(), .fuse = fuse})({pair_of(1, 2)});
    });
    EXPECT_NE(text.find("unsupported: exp on watch_picky for (f32[2])\n"), std::string::npos) << text;
    EXPECT_NE(text.find("watch_picky.exp.shared  not on a Sunday"), std::string::npos) << text;
    EXPECT_NE(text.find("node \"block."), std::string::npos) << text;
    EXPECT_NE(text.find("hint: "), std::string::npos) << text;
  }
}

TEST(Fallback, ASessionAllowsWithCopiesAsStepsAndInTheLedger) {
  const CompileOptions options = {
      .backend = picky().name(), .policy = {.fallback = Fallback::allow}, .fuse = false};
  auto program = compile(with_exp, kPair, options);
  (void)program({pair_of(1, 2)});
  const auto text = program.schedule_text();
  EXPECT_EQ(text.find("watch_picky.exp.shared  "), std::string::npos) << "it runs no step: " << text;
  EXPECT_NE(text.find("copy "), std::string::npos) << text;
  reset_ledger();
  picky().reset();
  const auto y = program({pair_of(1, 2)})[0].to_vector<double>();
  EXPECT_NEAR(y[0], std::exp(1.0) + 1, 1e-5);
  EXPECT_NEAR(y[1], std::exp(4.0) + 2, 1e-4);
  // The input comes from another device, which the ledger has; the result, a tensor of this one, is read.
  EXPECT_EQ(copies(picky().name(), "").bytes, 8u);
  EXPECT_EQ(copies(picky().name(), "").bytes + 8, picky().bytes_out);
  EXPECT_EQ(copies("", picky().name()).bytes, picky().bytes_in);
  EXPECT_EQ(ledger_calls(picky().name(), "mul"), 1u);
  EXPECT_EQ(ledger_calls(picky().name(), "add"), 1u);
}

// ---- ledger ----

std::map<std::string, uint64_t> ledger_of(const std::string& device) {
  std::map<std::string, uint64_t> out;
  for (const auto& r : ledger_rows())
    if (r.device == device) out[r.op] += r.calls;
  return out;
}
std::map<std::string, uint64_t> counted_launches() {
  std::map<std::string, uint64_t> out;
  for (const auto& [op, n] : counting_backend().launches)
    if (n) out[op] = n;
  return out;
}

TEST(Ledger, EqualsTheBackendsOwnCountsOverATrainingRun) {
  const OnBackend on(counting_backend().name());
  SmallModel model;
  auto step = model.function();
  for (int run = 0; run < 2; ++run) {
    reset_ledger();
    counting_backend().reset();
    EXPECT_TRUE(ledger_of(counting_backend().name()).empty()) << "a reset forgets";
    for (int t = 0; t < 3; ++t) (void)step(SmallModel::batch(t, 4))[0].item();
    if (run == 1) eager::clear_call_cache();  // rows of plans that have ended are kept
    const auto rows = ledger_of(counting_backend().name());
    EXPECT_EQ(rows, counted_launches());
    EXPECT_GT(rows.at("matmul"), 9u);
    EXPECT_EQ(copies(counting_backend().name(), "").calls, 0u);
  }
}

TEST(Ledger, EqualsTheBackendsOwnCountsInACompiledStep) {
  const OnBackend on(counting_backend().name());
  SmallModel model;
  auto program = compile(model.function(), SmallModel::inputs(), {.backend = counting_backend().name()});
  const auto first = SmallModel::batch(0, 4), second = SmallModel::batch(1, 6);
  reset_ledger();
  counting_backend().reset();
  for (int t = 0; t < 2; ++t) (void)program(first), (void)program(second);
  EXPECT_EQ(ledger_of(counting_backend().name()), counted_launches());
  EXPECT_FALSE(counted_launches().empty());
}

// ---- cache of calls ----

uint64_t misses_of(const std::function<void()>& f) {
  const uint64_t before = eager::cache_stats().misses;
  f();
  return eager::cache_stats().misses - before;
}

TEST(CallCache, AHitAsksNobodyAgain) {
  const OnBackend on(counting_backend().name());
  const auto x = pair_of(1, 2);
  eager::clear_call_cache();
  EXPECT_EQ(misses_of([&] { (void)(x + x); }), 1u);
  const uint64_t asked = counting_backend().asked;
  EXPECT_EQ(misses_of([&] {
              for (int i = 0; i < 10; ++i) (void)(x + x);
            }),
            0u);
  EXPECT_EQ(counting_backend().asked, asked);
}

TEST(CallCache, WhatMattersToTheChoiceIsInTheKey) {
  WEFT_NEEDS_PLUGIN("far");
  eager::clear_call_cache();
  const auto x = Tensor::of({1, 2, 3, 4}, {2, 2}), flat = Tensor::of({1, 2, 3, 4}, {4});
  const auto half = Tensor::of({1, 2, 3, 4}, {2, 2}, DType::f16), there = x.to("far");
  const std::pair<const char*, std::function<void()>> different[] = {
      {"op", [&] { (void)max(x, {Dim(0)}, false); }},
      {"the same op", [&] { (void)sum(x, {Dim(0)}, false); }},
      {"attribute", [&] { (void)sum(x, {Dim(1)}, false); }},
      {"another attribute", [&] { (void)sum(x, {Dim(0)}, true); }},
      {"shape", [&] { (void)sum(flat, {Dim(0)}, false); }},
      {"dtype", [&] { (void)sum(half, {Dim(0)}, false); }},
      {"device", [&] { (void)sum(there, {Dim(0)}, false); }},
      {"policy", [&] {
         const PolicyScope scope(Policy{.determinism = 1});
         (void)sum(x, {Dim(0)}, false);
       }}};
  for (const auto& [what, call] : different) {
    EXPECT_EQ(misses_of(call), 1u) << what;
    EXPECT_EQ(misses_of(call), 0u) << what << " again";
  }
  EXPECT_EQ(eager::cache_stats().entries, std::size(different));
}

// Numbers that people write differ in a few high bits, and shapes in a few low ones.
TEST(CallCache, KeepsCallsThatDifferInOneNumber) {
  eager::clear_call_cache();
  const auto calls = [] {
    for (int i = -20; i < 20; ++i) (void)full(i, {}, DType::f32), (void)full(0.25 * i, {2}, DType::f32);
    for (int64_t n = 1; n <= 64; ++n) (void)full(1, {8, n}, DType::u8), (void)full(1, {n, 16}, DType::u8);
  };
  EXPECT_EQ(misses_of(calls), 40u + 40u + 127u);  // [8, 16] is in both rows
  EXPECT_EQ(misses_of(calls), 0u);
}

TEST(CallCache, IsBoundedAndForgetsWithoutHarm) {
  eager::clear_call_cache();
  for (int round = 0; round < 2; ++round)
    for (int64_t n = 1; n <= 3000; ++n) {
      const auto y = full(1, {Dim(n % 61 + 1), Dim(n)}, DType::u8);
      if (n % 500 == 0) {
        EXPECT_EQ(y.sizes()[1], n);
        EXPECT_EQ(y.to_vector<int32_t>(), std::vector<int32_t>(static_cast<size_t>((n % 61 + 1) * n), 1));
      }
    }
  EXPECT_LE(eager::cache_stats().entries, 2048u);
  EXPECT_GT(eager::cache_stats().entries, 1024u);
  eager::clear_call_cache();
  EXPECT_EQ(eager::cache_stats().entries, 0u);
}

TEST(CallCache, EachThreadHasItsOwn) {
  const auto x = pair_of(1, 2);
  (void)(x + x);
  uint64_t misses[2] = {0, 0};
  std::vector<std::thread> threads;
  for (auto& m : misses)
    threads.emplace_back([&] {
      EXPECT_EQ(eager::cache_stats().entries, 0u);
      for (int i = 0; i < 50; ++i) EXPECT_EQ((x + x).to_vector<float>(), (std::vector<float>{2, 4}));
      m = eager::cache_stats().misses;
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(misses[0], 1u);
  EXPECT_EQ(misses[1], 1u);
}

}  // namespace
}  // namespace weft::testing::seam_test
