#include <gtest/gtest.h>

#include <cmath>

#include "compiler/compile.h"
#include "runtime/devices.h"
#include "runtime/session.h"
#include "test_backends.h"
#include "weft/jit.h"
#include "weft/ops.h"

// Regression tests of faults found in a review of the first version.
namespace weft::review_test {
namespace {

using testing::error_of;
#define EXPECT_SAYS(words, ...) \
  EXPECT_NE(error_of([&] { (void)(__VA_ARGS__); }).find(words), std::string::npos) << #__VA_ARGS__

TEST(Review, AnUpdateBeforeBackwardIsAnErrorInATraceToo) {
  const auto scalar = [](const char* name) { return Tensor::scalar(0).named(name); };
  Tensor w = Tensor::scalar(10).named("w");
  const Tensor m = scalar("m"), v = scalar("v"), a = scalar("a"), b = scalar("b");
  w.requires_grad(true);
  const auto wrong = [&](const std::vector<Tensor>& in) {
    const Tensor y = w * w;
    {
      const NoGrad off;
      adamw_step(w, in[0], m, v, in[0], a, b);
    }
    y.backward();
    return std::vector<Tensor>{w.grad()};
  };
  EXPECT_SAYS("overwritten in place", trace(wrong, {{"g", {DType::f32, {}}}}));
}

TEST(Review, TheSameInputsMayBeExecutedAgain) {
  const Traced traced = trace(
      [](const std::vector<Tensor>& in) { return std::vector<Tensor>{matmul(matmul(in[0], in[0]), in[0])}; },
      {{"x", {DType::f32, {2, 2}}}});
  auto program =
      std::make_shared<const program::CompiledProgram>(value_or_raise(compiler::compile(*traced.graph, {})));
  auto session = value_or_raise(runtime::Session::create(
      program, value_or_raise(runtime::devices_for("reference", Policy())), Policy()));
  const auto x = Tensor::of({1, 2, 3, 4}, {2, 2});
  const runtime::HostTensor in{{DType::f32, {2, 2}}, x.to_bytes()};
  raise_if(session->set_inputs({&in, 1}));
  std::vector<std::byte> first;
  for (int i = 0; i < 3; ++i) {
    raise_if(session->execute());
    const auto out = value_or_raise(session->outputs())[0].bytes;
    if (i == 0) first = out;
    EXPECT_EQ(out, first) << "execution " << i;
  }
}

TEST(Review, HandlesOnOneBufferAreOneStateOfATrace) {
  const auto scalar = [](const char* name) { return Tensor::scalar(0).named(name); };
  const auto run = [&](bool compiled) {
    const Tensor w = Tensor::scalar(10).named("w"), m = scalar("m"), v = scalar("v"), a = scalar("a"),
                 b = scalar("b");
    const auto f = [&](const std::vector<Tensor>& in) {
      adamw_step(w.detach(), in[0], m, v, in[0], a, b);
      return std::vector<Tensor>{w + 0.0};
    };
    const Tensor g = Tensor::scalar(1);
    return compiled ? compile(f, {{"g", {DType::f32, {}}}})({g})[0].item() : f({g})[0].item();
  };
  EXPECT_EQ(run(true), run(false));
}

TEST(Review, SizesThatOverflowAreRefused) {
  const Tensor t = Tensor::of({1}, {1});
  EXPECT_SAYS("more bytes than", full(1, {int64_t{1} << 40, int64_t{1} << 40}));
  EXPECT_SAYS("outside of what a dimension holds", reshape(t, {274177, 67280421310721}));
  EXPECT_SAYS("step must be in", slice(t, 0, 0, 1, INT64_MAX));
}

TEST(Review, MemoryThatIsNotThereIsNamedByOpTypeAndBytes) {
  for (const char* backend : {"reference", "native"}) {
    const std::string here = default_backend();
    set_default_backend(backend);
    EXPECT_SAYS(
        fmt::format("out of memory: full: f32[1099511627776]: {}: allocating 4398046511104 bytes", backend),
        full(0, {int64_t{1} << 40}));
    EXPECT_SAYS("out of memory: full: f32[4611686018427387903]: ", full(0, {Dim::kMax}));
    EXPECT_SAYS("out of memory: full: f64[2305843009213693952] has more bytes than 64 bits count",
                full(0, {int64_t{1} << 61}, DType::f64));
    EXPECT_SAYS("dimension 4611686018427387904 is outside of what a dimension holds",
                full(0, {int64_t{1} << 62}));
    set_default_backend(here);
  }
}

TEST(Review, AnErrorOfALaunchNamesItsKernelOnce) {
  const Tensor table = Tensor::of({1, 2}, {2, 1}, DType::f64), bad = Tensor::of({7}, {1}, DType::i32);
  EXPECT_SAYS("device error: " + default_backend() + ".gather.shared: index 7 outside [0, 2) at position 0",
              gather(table, bad));
}

TEST(Review, MinusZeroIsNotZero) {
  const auto f = [](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{in[0] / full(0.0) + 0.0, in[0] / full(-0.0)};
  };
  const auto out = compile(f, {{"x", {DType::f32, {}}}})({Tensor::scalar(1)});
  EXPECT_EQ(out[0].item(), INFINITY);
  EXPECT_EQ(out[1].item(), -INFINITY);
}

TEST(Review, EmptyTensorsAndThoseOfEndedTracesAreErrors) {
  const Tensor empty, x = Tensor::of({1, 2}, {2});
  EXPECT_SAYS("empty", empty.item());
  EXPECT_SAYS("empty", x.grad().item());
  EXPECT_SAYS("empty", add(empty, x));
  EXPECT_SAYS("empty", empty.backward());
  EXPECT_SAYS("empty", empty.shape());
  Tensor kept;
  const auto traced = trace(
      [&](const std::vector<Tensor>& in) {
        kept = relu(in[0]);
        return std::vector<Tensor>{kept};
      },
      {{"x", {DType::f32, {2}}}});
  EXPECT_SAYS("trace", relu(kept));
  EXPECT_SAYS("trace", add(x, kept));
  EXPECT_SAYS("trace", kept.to("reference"));
  EXPECT_SAYS(
      "no schedule yet",
      compile([](const std::vector<Tensor>& in) { return in; }, {{"x", {DType::f32, {2}}}}).schedule_text());
}

TEST(Review, ATapeOfSharedEdgesEndsWithoutRecursion) {
  Tensor y = Tensor::scalar(1).requires_grad(true);
  for (int i = 0; i < 100'000; ++i) y = mul(y, y);
  y = Tensor();
}

template <class T>
void expect_elements_of() {
  const T values[] = {T(0), T(1), T(3)};
  const int64_t shape[] = {3};
  for (const DType type : {DType::f32, DType::i64, DType::u8, DType::bf16}) {
    const auto back = Tensor::of(std::span<const T>(values), shape, type).template to_vector<T>();
    EXPECT_TRUE(std::equal(back.begin(), back.end(), values)) << name(type);
  }
}

TEST(Review, TensorsTakeEveryElementType) {
  expect_elements_of<bool>(), expect_elements_of<float>(), expect_elements_of<double>();
  expect_elements_of<signed char>(), expect_elements_of<unsigned char>(), expect_elements_of<short>();
  expect_elements_of<unsigned short>(), expect_elements_of<int>(), expect_elements_of<unsigned>();
  expect_elements_of<long>(), expect_elements_of<unsigned long>();
  expect_elements_of<long long>(), expect_elements_of<unsigned long long>();
  EXPECT_EQ(Tensor::of({-1, 0, 0.5}, {3}).to_vector<bool>(), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(Tensor::of({-1, 300, 2.7}, {3}).to_vector<unsigned char>(),
            (std::vector<unsigned char>{0, 255, 2}));
}

}  // namespace
}  // namespace weft::review_test
