#include <gtest/gtest.h>

#include "eager/called_from.h"
#include "weft/jit.h"
#include "weft/ops.h"
#include "weft/trainer.h"
#include "weft/vision.h"

// The line that called an op goes with it: through passes, groups and fusions to what runs, and not into
// files.
namespace weft::called_from_test {
namespace {

int line = 0;  // where the program that is recorded has come to; 0: nobody knows

struct Lines {
  Lines() {
    line = 1;
    eager::set_called_from([]() -> eager::CalledFrom {
      return line ? std::make_shared<const std::string>(fmt::format("model.cpp:{}", line)) : nullptr;
    });
  }
  ~Lines() { eager::set_called_from(nullptr); }
};

Tensor images(const std::vector<int64_t>& shape) {
  return full(0.5, Shape(shape.begin(), shape.end()), DType::f32);
}

program::CompiledProgram step_of_gpt() {
  nn::GPT model({.vocabulary = 11, .context = 8, .layers = 2, .heads = 2, .width = 16});
  nn::build(model, {.seed = 1});
  nn::set_training(model, true);
  nn::AdamW optimizer(nn::parameters(model));
  const InputSpec ids{"ids", {DType::i32, {4, 8}}}, targets{"targets", {DType::i32, {4, 8}}};
  return compile(
             [&](const std::vector<Tensor>& in) {
               return std::vector{nn::train_step(model, optimizer, {in[0], in[1]}, Tensor::scalar(1e-2))};
             },
             {ids, targets}, {.name = "step", .backend = "native"})
      .snapshot();
}

program::CompiledProgram resnet() {
  nn::ResNet model({.channels = 3, .classes = 5, .widths = {8, 16}, .blocks = 1});
  nn::build(model, {.seed = 1});
  return compile([&](const std::vector<Tensor>& in) { return std::vector{model(in[0])}; },
                 {{"images", {DType::f32, {2, 3, 16, 16}}}}, {.name = "resnet", .backend = "native"})
      .snapshot();
}

TEST(CalledFrom, EveryCallOfAProgramKeepsItsLineThatNoFileHas) {
  for (const auto& make : {step_of_gpt, resnet}) {
    const std::string without = program::serialize(make());
    const Lines lines;
    const auto program = make();
    ASSERT_FALSE(program.calls.empty());
    for (const auto& call : program.calls)
      EXPECT_EQ(call.from, "model.cpp:1") << call.op << " " << call.where;
    EXPECT_EQ(program::serialize(program), without);
    EXPECT_EQ(program::print(program).find("model.cpp"), std::string::npos);
  }
}

TEST(CalledFrom, AFusionHasTheLinesOfItsNodes) {
  const Lines lines;
  const auto program = compile(
                           [](const std::vector<Tensor>& in) {
                             Tensor x = in[0];
                             for (line = 1; line < 7; ++line) x = sin(mul(x, x));
                             return std::vector{x};
                           },
                           {{"x", {DType::f32, {64}}}}, {.name = "chain", .backend = "native"})
                           .snapshot();
  ASSERT_EQ(program.calls.size(), 1u);
  EXPECT_EQ(program.calls[0].from, "model.cpp:1, model.cpp:2, model.cpp:3, model.cpp:4 and 2 more");
}

TEST(CalledFrom, ARecomposedOpHasTheLineOfItsLastNode) {
  const Lines lines;
  const auto program = compile(
                           [](const std::vector<Tensor>& in) {
                             line = 2;
                             const Tensor s = sigmoid(in[0]);
                             line = 3;
                             const Tensor y = mul(in[0], s);
                             line = 4;
                             return std::vector{matmul(y, y)};
                           },
                           {{"x", {DType::f32, {8, 8}}}}, {.name = "silu", .backend = "native"})
                           .snapshot();
  ASSERT_EQ(program.calls.size(), 2u) << program::print(program);
  EXPECT_EQ(program.calls[0].op, "silu");
  EXPECT_EQ(program.calls[0].from, "model.cpp:3");
  EXPECT_EQ(program.calls[1].from, "model.cpp:4");
}

TEST(CalledFrom, GradientsAreFromTheLineOfTheirOp) {
  const Lines lines;
  Tensor x = images({3, 4}).requires_grad(true);
  const auto program = compile(
                           [&](const std::vector<Tensor>&) {
                             line = 3;
                             const Tensor y = exp(x);
                             line = 4;
                             const Tensor z = sum(y);
                             line = 5;
                             z.backward();
                             line = 6;
                             Tensor grad = x.grad();
                             x.clear_grad();
                             return std::vector{sqrt(grad)};
                           },
                           {}, {.name = "step", .backend = "native", .fuse = false})
                           .snapshot();
  std::string said;
  for (const auto& call : program.calls) said += call.op + " " + call.from + "\n";
  EXPECT_NE(said.find("mul model.cpp:3\n"), std::string::npos) << said;  // the gradient of exp
  EXPECT_NE(said.find("sqrt model.cpp:6\n"), std::string::npos) << said;
  EXPECT_EQ(said.find("mul model.cpp:5\n"), std::string::npos) << said;
}

TEST(CalledFrom, BackwardNamesTheLineOfTheOp) {
  const Lines lines;
  Tensor x = images({2}).requires_grad(true);
  line = 7;
  const Tensor y = mul(x, x);
  line = 8;
  const Tensor z = sum(y);
  line = 9;
  z.backward();
  try {
    z.backward();
    FAIL() << "it went back twice";
  } catch (const Error& e) {
    EXPECT_TRUE(e.status().message().ends_with("\n  in the gradient of sum, called from model.cpp:8"))
        << e.what();
  }
}

}  // namespace
}  // namespace weft::called_from_test
