#include "ir/graph.h"
#include "test_backends.h"
#include "training_rig.h"
#include "weft/ops.h"
#include "weft/trace.h"
#include "weft/trainer.h"

// The loss of half logits is f32, and the logits stay halves: there are as many as rows times words.
namespace weft::testing::half_loss_test {
namespace {

TEST(HalfLoss, ATrainingStepConvertsNoLogits) {
  auto config = gpt();
  config.vocabulary = 29;  // no other size of the model
  nn::GPT model(config);
  nn::build(model, {.dtype = DType::bf16});
  nn::AdamW optimizer(nn::parameters(model));
  const Dim batch = Dim::symbol("batch", 1, 512);
  const auto traced = trace(
      [&](const std::vector<Tensor>& in) {
        return std::vector<Tensor>{nn::train_step(model, optimizer, {in[0], in[1]}, in[2])};
      },
      {{"tokens", {DType::i32, {batch, kContext}}},
       {"targets", {DType::i32, {batch, kContext}}},
       {"rate", {DType::f32, {}}}});
  const ir::Graph& g = *traced.graph;
  int halves = 0;
  for (const TensorType& t : g.types) {
    if (t.rank() == 0 || !(t.shape.back() == Dim(29))) continue;
    EXPECT_EQ(t.dtype, DType::bf16) << text(t) << "\n" << traced.text();
    ++halves;
  }
  EXPECT_GE(halves, 2) << "logits and their gradient";
  EXPECT_EQ(g.types[static_cast<size_t>(g.outputs[0].value)].dtype, DType::f32);
}

struct LossAndGradient {
  std::vector<std::byte> loss, gradient;
  bool operator==(const LossAndGradient&) const = default;
};
LossAndGradient of(const Tensor& logits, const std::function<Tensor(const Tensor&)>& loss) {
  const Tensor x = logits.detach().requires_grad(true), y = loss(x);
  EXPECT_EQ(y.dtype(), DType::f32);
  y.backward();
  EXPECT_EQ(x.grad().dtype(), logits.dtype());
  return {y.to_bytes(), x.grad().to_bytes()};
}

// Both round the f32 loss and each element of the gradient once.
TEST(HalfLoss, IsThatOfConvertedLogits) {
  constexpr int64_t kRows = 5, kWords = 1031;
  const int64_t shape[] = {kRows, kWords};
  for (const char* backend : {"reference", "native"})
    for (const DType t : {DType::bf16, DType::f16}) {
      const OnBackend on(backend);
      const Tensor targets = Tensor::of({1, 1030, -100, 7, 0}, {kRows}, DType::i32);
      const Tensor logits = tensor_of(noise(3, kRows * kWords), shape, t) * Tensor::scalar(16, t);
      const auto direct = of(logits, [&](const Tensor& x) { return nn::token_loss(x, targets); });
      const auto converted =
          of(logits, [&](const Tensor& x) { return cross_entropy(cast(x, DType::f32), targets); });
      EXPECT_EQ(direct, converted) << backend << " " << name(t);
      const float loss = nn::token_loss(logits, targets).to_vector<float>()[0];
      EXPECT_GT(loss, 5) << "of numbers within 8";
    }
}

}  // namespace
}  // namespace weft::testing::half_loss_test
