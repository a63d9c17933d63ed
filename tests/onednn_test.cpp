#include <gtest/gtest.h>

#include "base/thread_pool.h"
#include "region_rig.h"
#include "seam/builtin.h"

// The provider `onednn` beyond `weft check`: bodies with an epilogue, threads, and its absence.
namespace weft::testing::onednn_test {
namespace {

using namespace region_rig;

using Tail = std::function<ir::Value(ir::Builder&, ir::Value)>;

Layer layer(IntList x, int64_t out, bool bias, const Tail& tail) {
  Layer l;
  const int64_t in = x.back();
  l.ask = {.op = "region", .inputs = {drawn(x, 1), drawn({out, in}, 2)}};
  if (bias) l.ask.inputs.push_back(drawn({out}, 3));
  ir::ValueList v;
  for (const auto& t : l.ask.inputs)
    v.push_back(l.graph.input(fmt::format("{}", v.size()),
                              {DType::f32, to_shape(std::span<const int64_t>(t.type.shape))}));
  const auto y = l.graph.one("linear", {v[0], v[1], bias ? v[2] : ir::Value()});
  l.graph.output("y", tail(l.graph, y));
  return l;
}

const std::pair<const char*, Tail> kTails[] = {
    {"none", [](ir::Builder&, ir::Value y) { return y; }},
    {"gelu", [](ir::Builder& b, ir::Value y) { return b.one("gelu", {y}); }},
    {"gelu of tanh",
     [](ir::Builder& b, ir::Value y) { return b.one("gelu", {y}, {{"approximate", int64_t{1}}}); }},
    {"silu", [](ir::Builder& b, ir::Value y) { return b.one("silu", {y}); }}};

class OneDnn : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!is_backend_available("onednn")) GTEST_SKIP() << "oneDNN 3 is not here";
  }
  static Result<seam::PreparedPtr> plan(Rig& rig, const Layer& l, const char* id = "onednn.region.linear") {
    return region_plan(rig, l, id);
  }
};

TEST_F(OneDnn, ALinearLayerAndItsActivationAreOneKernel) {
  Rig rig("onednn");
  for (const auto& [name, tail] : kTails)
    for (const bool bias : {false, true})
      for (const IntList& x : {IntList{5, 7}, IntList{2, 3, 70}, IntList{300, 40}}) {
        const Layer l = layer(x, 33, bias, tail);
        auto made = plan(rig, l);
        ASSERT_TRUE(made.ok()) << name << ": " << made.status().text();
        SCOPED_TRACE(fmt::format("{}{}", name, bias ? " with a bias" : ""));
        expect_right(rig, *made, l);
      }
}

// A NaN stays, as in the bodies.
TEST_F(OneDnn, ANaNGoesThroughEveryActivation) {
  Rig rig("onednn");
  for (const auto& [name, tail] : kTails) {
    Layer l = layer({4, 8}, 16, true, tail);
    store_element(DType::f32, l.ask.inputs[0].bytes.data(), 9, std::numeric_limits<double>::quiet_NaN());
    auto made = plan(rig, l);
    ASSERT_TRUE(made.ok()) << name;
    const auto y = numbers(value_or_raise(rig.launch(**made, l.ask)).outputs[0]);
    for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i / 16 == 1) << name << " " << i;
  }
}

TEST_F(OneDnn, ABodyThatIsAlmostOneIsRefused) {
  Rig rig("onednn");
  const Tail almost[] = {
      [](ir::Builder& b, ir::Value y) { return b.maximum(y, 1e-30); },
      [](ir::Builder& b, ir::Value y) { return b.mul(b.mul(y, 0.5), b.add(b.erf(b.mul(y, 0.7071)), 1)); },
      [](ir::Builder& b, ir::Value y) { return b.minimum(y, 0); },
      [](ir::Builder& b, ir::Value y) { return b.one("relu", {y}); },  // whose NaN oneDNN would lose
      [](ir::Builder& b, ir::Value y) { return b.one("silu", {b.one("silu", {y})}); },
      [](ir::Builder& b, ir::Value y) { return b.sum(b.one("silu", {y}), -1); },
      [](ir::Builder& b, ir::Value y) { return b.one("silu", {b.one("permute", {y})}); }};
  for (const auto& tail : almost) {
    const auto made = plan(rig, layer({6, 8}, 6, true, tail));
    EXPECT_EQ(made.status().code(), Code::unsupported);
    EXPECT_NE(made.status().message().find("the body is no linear layer"), std::string::npos)
        << made.status().text();
  }
  const auto refused = [&](const Tail& tail) {
    return plan(rig, layer({6, 6}, 6, false, tail)).status().message();
  };
  // 2^60 factors: a body's size is that of its calls.
  EXPECT_NE(refused([](ir::Builder& b, ir::Value y) {
              for (int i = 0; i < 60; ++i) y = b.mul(y, y);
              return y;
            }).find("the body is no linear layer"),
            std::string::npos);
  // A factor that is a number, and no input.
  Layer scaled;
  ir::Graph& g = scaled.graph;
  const auto w = g.input("w", {DType::f32, {1, 1}});
  g.output("y",
           g.matmul(g.full(std::numeric_limits<double>::infinity(), {1, 1}, DType::f32), w, false, true));
  EXPECT_NE(plan(rig, scaled).status().message().find("the body is no linear layer"), std::string::npos);
  // A bias that is added to other rows than those of the product.
  const auto l = layer({4, 8}, 6, false, [](ir::Builder& b, ir::Value y) {
    return b.add(b.reshape(y, {6, 4}), static_cast<ir::Graph&>(b).input("b", {DType::f32, {4}}));
  });
  EXPECT_EQ(plan(rig, l).status().code(), Code::unsupported);
}

// ---- convolutions with channels last, and the sum and relu behind them

constexpr const char* kLast = "conv_channels_last";

/// Of x with channels last; the padding keeps the places.
Conv around(IntList x, IntList w, int64_t stride) {
  const int64_t before = w.back() / 2, groups = x.back() / w[1];
  return {.x = x,
          .w = w,
          .stride = {stride, stride},
          .padding = {before, before, before, before},
          .groups = groups};
}
const Behind kBehind[] = {
    [](ir::Builder&, ir::Value y, const auto&) { return y; },
    [](ir::Builder& b, ir::Value y, const auto& more) {
      return b.one("relu", {b.add(y, more({y.shape().back().value()}))});
    },
    [](ir::Builder& b, ir::Value y, const auto& more) {
      const ir::Value sum = b.add(y, more({1, 1, y.shape().back().value()}));
      return b.one("relu", {b.add(b.add(more(sizes_of(y)), more({y.shape().back().value()})), sum)});
    }};

TEST_F(OneDnn, AConvolutionWithItsSumAndReluIsOneKernel) {
  Rig rig("onednn");
  const struct {
    IntList x, w;
    int64_t stride;
  } kinds[] = {{{2, 9, 7, 16}, {24, 16, 3, 3}, 1},
               {{1, 9, 7, 16}, {24, 16, 1, 1}, 2},
               {{2, 8, 8, 32}, {32, 1, 3, 3}, 2},      // each channel by itself
               {{1, 26, 56, 64}, {64, 64, 3, 3}, 1}};  // in three parts of rows
  for (const auto& [x, w, stride] : kinds)
    for (const Behind& behind : kBehind) {
      const Layer l = convolution(kLast, around(x, w, stride), behind);
      auto made = plan(rig, l, "onednn.region.conv");
      ASSERT_TRUE(made.ok()) << made.status().text();
      expect_right(rig, *made, l);
    }
}

TEST_F(OneDnn, ANaNGoesThroughRelu) {
  Rig rig("onednn");
  Layer l = convolution(kLast, around({1, 4, 4, 8}, {16, 8, 1, 1}, 1), kBehind[1]);
  store_element(DType::f32, l.ask.inputs[0].bytes.data(), 9, std::numeric_limits<double>::quiet_NaN());
  auto made = plan(rig, l, "onednn.region.conv");
  ASSERT_TRUE(made.ok()) << made.status().text();
  const auto y = numbers(value_or_raise(rig.launch(**made, l.ask)).outputs[0]);
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i / 16 == 1) << i;
}

TEST_F(OneDnn, WhatIsAlmostSuchAConvolutionIsRefused) {
  Rig rig("onednn");
  const Behind almost[] = {
      [](ir::Builder& b, ir::Value y, const auto&) { return b.maximum(y, 1e-30); },
      [](ir::Builder& b, ir::Value y, const auto&) { return b.minimum(y, 0); },
      [](ir::Builder& b, ir::Value y, const auto&) { return b.add(y, y); },
      [](ir::Builder& b, ir::Value y, const auto&) { return b.add(b.one("relu", {y}), b.one("relu", {y})); },
      [](ir::Builder& b, ir::Value y, const auto& more) { return b.mul(y, more(sizes_of(y))); },
      [](ir::Builder& b, ir::Value y, const auto& more) {
        return b.add(b.one("relu", {y}), more(sizes_of(y)));
      },
      [](ir::Builder& b, ir::Value y, const auto& more) {
        return b.add(y, b.one("relu", {more(sizes_of(y))}));
      },
      [](ir::Builder& b, ir::Value y, const auto& more) { return b.add(y, more({y.shape()[1].value(), 1})); },
      [](ir::Builder& b, ir::Value y, const auto&) {
        return b.one("permute", {y}, {{"axes", Shape{0, 2, 1, 3}}});
      }};
  for (const Behind& behind : almost) {
    const Layer l = convolution(kLast, around({1, 6, 6, 8}, {8, 8, 3, 3}, 1), behind);
    const auto made = plan(rig, l, "onednn.region.conv");
    EXPECT_EQ(made.status().code(), Code::unsupported);
    EXPECT_NE(made.status().message().find("the body"), std::string::npos) << made.status().text();
  }
}

// Threads are the host's, and their number changes no bit.
TEST_F(OneDnn, TheNumberOfThreadsChangesNoBit) {
  Rig rig("onednn");
  const Ask ask{.op = "matmul", .inputs = {counting({200, 150}, 0.3), counting({150, 260}, 0.7)}};
  std::vector<std::vector<std::byte>> seen;
  for (const int threads : {1, 2, 5}) {
    set_thread_count(threads);
    const auto call = value_or_raise(describe(ask));
    auto made = value_or_raise(rig.plan(call));
    EXPECT_STREQ(made->kernel.id, "onednn.matmul.blocks");
    seen.push_back(value_or_raise(rig.launch(*made, ask)).outputs[0].bytes);
  }
  set_thread_count(0);
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(seen[0], seen[2]);
}

// In a process of its own, which looks for the library where there is none.
TEST(OneDnnDeathTest, ALibraryThatIsNotThereIsAReasonAndNoCrash) {
  const auto is_it = [](const seam::Builtin& b) { return b.name == std::string_view("onednn"); };
  if (std::ranges::none_of(seam::builtin_backends(), is_it)) GTEST_SKIP() << "this build has it not";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const char* path : {"/nowhere/libdnnl.so.3", "/dev/null", "/usr/lib"})
    EXPECT_EXIT(
        {
          setenv("WEFT_ONEDNN_LIBRARY", path, 1);
          const auto there = get_backend_info("onednn");
          const bool says = there.state == "unavailable" &&
                            there.reason.find("WEFT_ONEDNN_LIBRARY can't be opened: ") != std::string::npos;
          const OnBackend on("onednn,native,reference");  // the next one is taken
          const auto y = Tensor::of({1, 2}, {2}) + Tensor::of({3, 4}, {2});
          std::exit(says && y.to_vector<float>()[1] == 6 && y.backend() != "onednn" ? 0 : 2);
        },
        ::testing::ExitedWithCode(0), "of the backends onednn,native,reference, ")
        << path;
}

}  // namespace
}  // namespace weft::testing::onednn_test
