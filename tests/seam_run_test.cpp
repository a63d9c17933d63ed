#include <gtest/gtest.h>

#include <future>

#include "conformance/seam/chain.h"
#include "conformance/seam/rig.h"
#include "seam_watchers.h"
#include "test_backends.h"
#include "weft/jit.h"
#include "weft/ops.h"

// Faults at run time: two threads, no memory, late errors. Work goes on after each.
namespace weft::testing::seam_run_test {
namespace {

using namespace conformance;

const std::vector<InputSpec> kPair = {{"x", {DType::f32, {2}}}};

Tensor pair_of(double a, double b) { return Tensor::of({a, b}, {2}); }

// ---- one thread at a time ----

TEST(OneThread, ASecondOneInASessionIsAnErrorNotARace) {
  auto session = compile([](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] + in[0]}; },
                         kPair, {.backend = gate().name()});
  const auto in = std::vector<Tensor>{pair_of(1, 2)};
  (void)session(in);
  gate().close();
  auto first = std::async(std::launch::async, [&] { return session(in)[0].to_vector<float>(); });
  gate().wait_for_a_visitor();
  EXPECT_NE(error_of([&] { (void)session(in); }).find("this session is running on another thread"),
            std::string::npos);
  gate().open();
  EXPECT_EQ(first.get(), (std::vector<float>{2, 4}));
  EXPECT_EQ(session(in)[0].to_vector<float>(), (std::vector<float>{2, 4})) << "usable afterwards";
}

TEST(OneThread, ASecondOneInAQueueIsAnErrorNotARace) {
  Rig rig(gate().name());
  const auto x = value_or_raise(rig.upload(counting({2})));
  gate().close();
  auto first = std::async(std::launch::async, [&] { return rig.queue->synchronize(); });
  gate().wait_for_a_visitor();
  char byte = 0;
  for (const Status& s : {rig.queue->synchronize(), rig.queue->copy_out(&byte, *x->buffer.get(), 0, 1)})
    EXPECT_NE(s.message().find("a queue of watch_gate is in use on another thread"), std::string::npos)
        << s.text();
  gate().open();
  EXPECT_TRUE(first.get().ok());
  EXPECT_TRUE(rig.queue->synchronize().ok());
}

// ---- memory ----

std::vector<float> small_work() {
  const auto a = Tensor::of({1, 2, 3, 4}, {2, 2}).requires_grad(true);
  const auto loss = sum(softmax(matmul(a, a), 1) * Tensor::of({1, 0, 0, 2}, {2, 2}), {}, false);
  loss.backward();
  auto out = a.grad().to_vector<float>();
  out.push_back(loss.to_vector<float>()[0]);
  return out;
}

TEST(Memory, WhicheverAllocationFailsTheErrorSaysWhatAndAllGoesOn) {
  const OnBackend on(starving().name());
  auto& device = *value_or_raise(seam::registry().open(starving().name()));
  const auto expected = small_work();
  device.trim();
  const uint64_t at_rest = device.live_bytes();
  starving().allow(UINT64_MAX);
  EXPECT_EQ(small_work(), expected);
  device.trim();
  const uint64_t needed = UINT64_MAX - starving().left();
  ASSERT_GT(needed, 3u);
  for (uint64_t k = 0; k < needed; ++k) {
    starving().allow(k);
    const auto text = error_of([] { (void)small_work(); });
    starving().allow(UINT64_MAX);
    EXPECT_NE(text.find("watch_starving: allocating "), std::string::npos) << k << ": " << text;
    EXPECT_NE(text.find(" bytes ("), std::string::npos) << text;
    EXPECT_NE(text.find("this is all there is"), std::string::npos) << text;
    EXPECT_EQ(small_work(), expected) << "after failure " << k;
    device.trim();
    EXPECT_EQ(device.live_bytes(), at_rest) << "failure " << k << " left memory behind";
  }
}

TEST(Memory, WhatThePoolKeepsIsGivenBackBeforeAnythingFails) {
  const OnBackend on(starving().name());
  auto& device = *value_or_raise(seam::registry().open(starving().name()));
  device.trim();
  starving().allow(1);
  starving().returns(true);
  (void)pair_of(1, 2);  // its buffer waits in the pool, and no other is left
  EXPECT_EQ(starving().left(), 0u);
  const std::vector<double> many(1000, 1);
  const int64_t shape[] = {1000};
  EXPECT_EQ(error_of([&] { (void)Tensor::of(std::span<const double>(many), shape, DType::f32); }),
            "no error");
  starving().returns(false);
  starving().allow(UINT64_MAX);
  device.trim();
}

TEST(Memory, ASessionThatFindsNoneSaysSoAndLeavesNothing) {
  auto& device = *value_or_raise(seam::registry().open(starving().name()));
  const auto build = [] {
    return compile(
               [](const std::vector<Tensor>& in) { return std::vector<Tensor>{exp(in[0] * in[0]) + in[0]}; },
               kPair, {.backend = starving().name()})({pair_of(1, 2)})[0]
        .to_vector<float>();
  };
  const auto expected = build();
  device.trim();  // as an allocation that fails does
  const uint64_t at_rest = device.live_bytes();
  uint64_t failures = 0;
  for (uint64_t k = 0; k < 20; ++k) {
    starving().allow(k);
    const auto text = error_of([&] { EXPECT_EQ(build(), expected); });
    starving().allow(UINT64_MAX);
    if (text == "no error") break;
    ++failures;
    EXPECT_NE(text.find("watch_starving: allocating "), std::string::npos) << text;
    device.trim();
    EXPECT_EQ(device.live_bytes(), at_rest) << "failure " << k;
  }
  EXPECT_GE(failures, 1u);
  EXPECT_LT(failures, 20u);
}

// ---- the vendor's objects ----

// A queue that is given to another library, or comes from it: here the same one, by both ways.
TEST(VendorObjects, AQueueGoesOutAndComesIn) {
  if (!is_backend_available("opencl")) GTEST_SKIP() << "opencl is not available here";
  conformance::Rig rig("opencl");
  void* const native = value_or_raise(rig.device.native(rig.queue.get(), "opencl.queue"));
  EXPECT_NE(native, nullptr);
  EXPECT_NE(value_or_raise(rig.device.native(nullptr, "opencl.context")), native);
  conformance::Chain chain(rig, 5);
  {
    const auto imported = value_or_raise(rig.device.import_queue(native));
    chain.launch(*imported, 20);
    chain.launch(*rig.queue, 20);  // one queue behind both: no wait between them
    chain.launch(*imported, 20);
    EXPECT_GE(value_or_raise(imported->await(value_or_raise(imported->mark()))), 1u);
    EXPECT_EQ(chain.wrong(), "");
  }
  chain.launch(*rig.queue, 20);  // it is open still
  raise_if(rig.queue->synchronize());
  EXPECT_EQ(chain.wrong(), "");
}

TEST(VendorObjects, WhatIsNotThereSaysSo) {
  auto& reference = *value_or_raise(seam::registry().open("reference"));
  EXPECT_EQ(reference.native(nullptr, "cuda.stream").status().text(),
            "unsupported: reference gives no object of its vendor's away");
  int here = 0;
  EXPECT_EQ(reference.import_queue(&here).status().text(),
            "unsupported: reference takes no queues of others");
  if (!is_backend_available("opencl")) GTEST_SKIP() << "opencl is not available here";
  auto& opencl = *value_or_raise(seam::registry().open("opencl"));
  EXPECT_NE(
      opencl.native(nullptr, "cuda.stream").status().text().find("there is no cuda.stream; a device has"),
      std::string::npos);
}

// ---- deferred errors ----

TEST(DeferredError, ComesAtTheReadWithTheKernelsIdAndOnlyOnce) {
  WEFT_NEEDS_PLUGIN("far");
  const OnBackend on("far");
  const auto x = Tensor::of({1, 2, 3, 4}, {4}), index = Tensor::of({70}, {1}, DType::i64);
  Tensor bad;
  EXPECT_EQ(error_of([&] { bad = gather(x, index, 0, 0); }), "no error") << "the launch only enqueues";
  EXPECT_NE(
      error_of([&] { (void)bad.to_vector<float>(); }).find("far.gather.shared: index 70 outside [0, 4)"),
      std::string::npos);
  EXPECT_EQ((x + x).to_vector<float>(), (std::vector<float>{2, 4, 6, 8})) << "the device goes on";
}

TEST(DeferredError, IsNotLostWhenMemoryIsGivenBackInBetween) {
  WEFT_NEEDS_PLUGIN("far");
  const OnBackend on("far");
  const auto x = Tensor::of({1, 2, 3, 4}, {4}), index = Tensor::of({70}, {1}, DType::i64);
  const auto bad = gather(x, index, 0, 0);
  value_or_raise(seam::registry().open("far"))->trim();  // waits for the queue, as a full pool does
  EXPECT_NE(error_of([&] { (void)bad.to_vector<float>(); }).find("index 70"), std::string::npos);
  EXPECT_EQ(error_of([&] { (void)x.to_vector<float>(); }), "no error");
}

TEST(DeferredError, ASessionReportsItAndGoesOn) {
  WEFT_NEEDS_PLUGIN("far");
  auto program =
      compile([](const std::vector<Tensor>& in) { return std::vector<Tensor>{gather(in[0], in[1], 0, 0)}; },
              {{"x", {DType::f32, {4}}}, {"index", {DType::i64, {1}}}}, {.backend = "far"});
  const auto x = Tensor::of({1, 2, 3, 4}, {4});
  EXPECT_NE(error_of([&] {
              (void)program({x, Tensor::of({-1}, {1}, DType::i64)});
            }).find("far.gather.shared: index"),
            std::string::npos);
  EXPECT_EQ(program({x, Tensor::of({2}, {1}, DType::i64)})[0].item(), 3);
}

}  // namespace
}  // namespace weft::testing::seam_run_test
