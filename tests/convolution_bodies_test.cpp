#include <gtest/gtest.h>

#include "region_rig.h"
#include "weft/jit.h"
#include "weft/ops.h"

// Bodies that are a convolution, a sum and relu, as native's kernels take them.
namespace weft::testing::convolution_bodies_test {
namespace {

using namespace region_rig;

constexpr const char *kWindows = "native.region.conv_windows", *kStrips = "native.region.conv_strips";

ir::Value channels(ir::Value y, const std::function<ir::Value(IntList)>& more) {
  IntList shape(static_cast<size_t>(y.type().rank() - 1), 1);
  shape[0] = y.shape()[1].value();
  return more(shape);
}
const Behind kBehind[] = {
    [](ir::Builder&, ir::Value y, const auto&) { return y; },
    [](ir::Builder& b, ir::Value y, const auto&) { return b.one("relu", {y}); },
    [](ir::Builder& b, ir::Value y, const auto& more) { return b.add(more(sizes_of(y)), y); },
    [](ir::Builder& b, ir::Value y, const auto& more) {
      return b.one("relu", {b.add(y, channels(y, more))});
    },
    [](ir::Builder& b, ir::Value y, const auto& more) {  // a residual with a bias of its own, as given
      const ir::Value flat = more({y.shape()[1].value()});
      Shape shape(static_cast<size_t>(y.type().rank()), Dim(1));
      shape[1] = y.shape()[1];
      const ir::Value residual = b.add(more(sizes_of(y)), b.reshape(flat, shape));
      return b.one("relu", {b.add(b.add(y, channels(y, more)), residual)});
    }};

/// Sizes that neither vectors, tiles, strips nor blocks of long sums divide.
const Conv kMany[] = {
    {.x = {2, 16, 9, 7}, .w = {24, 16, 3, 3}, .padding = {1, 1, 1, 1}},
    {.x = {2, 3, 13, 11}, .w = {18, 3, 7, 7}, .stride = {2, 2}, .padding = {3, 3, 3, 3}},
    {.x = {1, 34, 9, 8}, .w = {40, 17, 3, 2}, .stride = {1, 2}, .padding = {2, 0, 0, 1}, .groups = 2},
    {.x = {1, 6, 19, 17}, .w = {16, 6, 3, 3}, .padding = {0, 2, 2, 2}, .dilation = {2, 3}},
    {.x = {1, 45, 17, 16}, .w = {17, 45, 3, 3}, .padding = {1, 1, 1, 1}},  // long sums, several strips
    {.x = {3, 20, 7, 7}, .w = {100, 20, 1, 1}},                            // several panels
    {.x = {2, 9, 8, 8}, .w = {33, 9, 1, 1}, .stride = {2, 2}},
    {.x = {2, 34, 40}, .w = {64, 17, 5}, .padding = {4, 1}, .dilation = {3}, .groups = 2}};
const Conv kFew[] = {
    {.x = {2, 4, 9, 7}, .w = {5, 4, 3, 3}, .padding = {1, 1, 1, 1}},
    {.x = {1, 6, 12, 12}, .w = {6, 1, 3, 3}, .padding = {1, 1, 1, 1}, .groups = 6},  // each channel by itself
    {.x = {1, 390, 32, 17}, .w = {9, 390, 1, 1}},  // rows in place, long sums
    {.x = {1, 3, 41, 39}, .w = {9, 3, 1, 1}},      // rows in place, several strips
    {.x = {2, 3, 1, 1}, .w = {2, 3, 1, 1}}};       // one place

void expect_all_right(const char* kernel, std::span<const Conv> kinds) {
  Rig rig("native");
  for (const Conv& c : kinds)
    for (size_t i = 0; i < std::size(kBehind); ++i) {
      SCOPED_TRACE(fmt::format("x {} w {}, tail {}", text(std::span<const int64_t>(c.x)),
                               text(std::span<const int64_t>(c.w)), i));
      const Layer l = convolution("conv", c, kBehind[i]);
      auto made = region_plan(rig, l, kernel);
      ASSERT_TRUE(made.ok()) << made.status().text();
      expect_right(rig, *made, l);
    }
}
TEST(ConvolutionBodies, AreOneKernelOfWindows) { expect_all_right(kWindows, kMany); }
TEST(ConvolutionBodies, AreOneKernelOfStrips) {
  expect_all_right(kStrips, kFew);
  expect_all_right(kStrips, kMany);
}

TEST(ConvolutionBodies, WithoutChannelsAreWhatFollows) {
  Rig rig("native");
  for (const char* kernel : {kWindows, kStrips}) {
    const Layer l = convolution("conv", {.x = {2, 0, 5, 3}, .w = {17, 0, 3, 1}}, kBehind[4]);
    auto made = region_plan(rig, l, kernel);
    ASSERT_TRUE(made.ok()) << made.status().text();
    expect_right(rig, *made, l);
  }
}

TEST(ConvolutionBodies, ANaNGoesThroughRelu) {
  Rig rig("native");
  for (const char* kernel : {kWindows, kStrips})
    for (const Behind& behind : {kBehind[1], kBehind[4]}) {
      Layer l = convolution("conv", {.x = {1, 8, 5, 4}, .w = {20, 8, 1, 1}}, behind);
      store_element(DType::f32, l.ask.inputs[0].bytes.data(), 9, std::numeric_limits<double>::quiet_NaN());
      auto made = region_plan(rig, l, kernel);
      ASSERT_TRUE(made.ok()) << made.status().text();
      const auto y = numbers(value_or_raise(rig.launch(**made, l.ask)).outputs[0]);
      for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i % 20 == 9) << kernel << " " << i;
    }
}

TEST(ConvolutionBodies, WhatIsAlmostOneIsRefused) {
  Rig rig("native");
  const Behind almost[] = {
      [](ir::Builder& b, ir::Value y, const auto&) { return b.maximum(y, 1e-30); },
      [](ir::Builder& b, ir::Value y, const auto&) { return b.minimum(y, 0); },
      [](ir::Builder& b, ir::Value y, const auto&) { return b.add(y, y); },
      [](ir::Builder& b, ir::Value y, const auto& more) { return b.mul(y, channels(y, more)); },
      [](ir::Builder& b, ir::Value y,
         const auto& more) {  // a number for each column, of which there are as many
        return b.add(y, more({y.shape()[1].value()}));
      },
      [](ir::Builder& b, ir::Value y, const auto& more) {  // and for each row
        return b.add(y, more({y.shape()[1].value(), 1}));
      },
      [](ir::Builder& b, ir::Value y, const auto& more) {
        return b.add(b.add(y, more(sizes_of(y))), more(sizes_of(y)));
      },
      [](ir::Builder& b, ir::Value y, const auto& more) {  // in another order, which rounds otherwise
        return b.add(b.add(y, more(sizes_of(y))), channels(y, more));
      },
      [](ir::Builder& b, ir::Value y, const auto& more) {
        return b.add(b.one("relu", {y}), channels(y, more));
      },
      [](ir::Builder& b, ir::Value y, const auto& more) {
        return b.add(y, b.one("relu", {more(sizes_of(y))}));
      },
      [](ir::Builder& b, ir::Value y, const auto&) {
        return b.one("permute", {y}, {{"axes", Shape{0, 1, 3, 2}}});
      }};
  for (const char* kernel : {kWindows, kStrips})
    for (const Behind& behind : almost) {
      const Layer l = convolution("conv", {.x = {1, 8, 16, 16}, .w = {16, 8, 1, 1}}, behind);
      EXPECT_EQ(region_plan(rig, l, kernel).status().code(), Code::unsupported);
    }
  const Layer last = convolution("conv_channels_last", {.x = {1, 6, 6, 8}, .w = {16, 8, 1, 1}}, kBehind[0]);
  const auto refused = region_plan(rig, last, kStrips);
  EXPECT_NE(refused.status().message().find("channels must not be the last axis"), std::string::npos)
      << refused.status().text();
}

Tensor small(std::vector<int64_t> shape, int64_t seed) {
  int64_t n = 1;
  for (const int64_t d : shape) n *= d;
  std::vector<double> x(static_cast<size_t>(n));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<double>((static_cast<int64_t>(i) * 7 + seed) % 9 - 4);
  return Tensor::of(std::span<const double>(x), shape, DType::f32);
}

// Whatever a backend makes of the call: small integers are exact.
TEST(ConvolutionBodies, ACompiledBlockIsOneCallAndTheSameNumbers) {
  const Tensor w1 = small({20, 4, 3, 3}, 1), w2 = small({4, 20, 1, 1}, 2), b1 = small({20, 1, 1}, 3);
  const auto block = [&](const std::vector<Tensor>& in) {
    const Tensor y = relu(conv(in[0], w1, {}, {1, 1, 1, 1}) + b1);
    return std::vector{relu(conv(y, w2) + in[0]), y};
  };
  for (const auto& backend : backends({"reference", "native", "openmp", "opencl", "far", "onednn,native"})) {
    SCOPED_TRACE(backend);
    const OnBackend on(backend.c_str());
    std::vector<std::vector<double>> made[2];
    for (const bool fuse : {false, true}) {
      auto program = compile(block, {{"x", {DType::f32, {2, 4, 6, 5}}}}, {.fuse = fuse});
      size_t calls = 0;
      for (const auto& call : program.snapshot().calls) calls += call.op.starts_with("conv_");
      EXPECT_EQ(calls, fuse ? 2u : 0u);
      for (const Tensor& y : program({small({2, 4, 6, 5}, 4)})) made[fuse].push_back(y.to_vector<double>());
    }
    EXPECT_EQ(made[0], made[1]);
  }
}

}  // namespace
}  // namespace weft::testing::convolution_bodies_test
