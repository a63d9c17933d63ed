#include <gtest/gtest.h>

#include <cmath>

#include "ir/graph.h"
#include "weft/ops.h"
#include "weft/random.h"
#include "weft/trace.h"
#include "weft/trainer.h"

// A small model: gradients, updates, repetition, tracing.
namespace weft::models_test {
namespace {

constexpr int64_t kContext = 4, kVocabulary = 7, kBatch = 5;

nn::GPTConfig small() {
  return {.vocabulary = kVocabulary, .context = kContext, .layers = 2, .heads = 2, .width = 8};
}

Tensor ids(const std::vector<int32_t>& v, std::initializer_list<int64_t> shape) {
  return Tensor::of(std::span<const int32_t>(v), std::span<const int64_t>(shape.begin(), shape.size()),
                    DType::i32);
}

struct Rows {
  Tensor tokens, targets;
};
Rows rows(uint64_t seed, int64_t n = kBatch) {
  std::vector<int32_t> tokens, targets;
  for (uint64_t i = 0; i < static_cast<uint64_t>(n * kContext); ++i)
    tokens.push_back(static_cast<int32_t>(random_word(seed, i) % kVocabulary));
  // The next token is the token plus one: something to learn.
  for (const int32_t t : tokens) targets.push_back((t + 1) % kVocabulary);
  return {ids(tokens, {n, kContext}), ids(targets, {n, kContext})};
}

std::vector<double> losses(nn::GPT& model, nn::AdamW& optimizer, int from, int to) {
  std::vector<double> out;
  nn::set_training(model, true);
  for (int i = from; i < to; ++i) {
    const auto r = rows(static_cast<uint64_t>(i), 16);
    out.push_back(nn::train_step(model, optimizer, {r.tokens, r.targets}, Tensor::scalar(1e-2)).item());
  }
  return out;
}

nn::GPT built(const nn::GPTConfig& config, uint64_t seed, DType dtype = DType::f32) {
  nn::GPT model(config);
  nn::build(model, {.seed = seed, .dtype = dtype});
  return model;
}

class Models : public ::testing::Test {
 protected:
  void SetUp() override { set_default_backend("reference"); }
};

TEST_F(Models, TrainingLearns) {
  nn::GPT model = built(small(), 1);
  nn::AdamW optimizer(nn::parameters(model));
  const auto all = losses(model, optimizer, 0, 200);
  EXPECT_NEAR(all.front(), std::log(kVocabulary), 0.3);  // knows nothing
  EXPECT_LT(all.back(), 0.1);
}

TEST_F(Models, SameSeedSameBits) {
  auto config = small();
  config.dropout = 0.3;
  std::vector<double> runs[2];
  for (auto& run : runs) {
    nn::GPT model = built(config, 7);
    nn::AdamW optimizer(nn::parameters(model));
    run = losses(model, optimizer, 0, 20);
  }
  EXPECT_EQ(runs[0], runs[1]);
  nn::GPT other = built(config, 8);
  nn::AdamW optimizer(nn::parameters(other));
  EXPECT_NE(losses(other, optimizer, 0, 20), runs[0]);
}

const Tensor& named(const std::vector<Tensor>& all, const std::string& name) {
  return *std::ranges::find_if(all, [&](const Tensor& t) { return t.name() == name; });
}

// The layers of the two blocks are equal in shape, so nothing but their identity keeps them apart.
TEST_F(Models, EqualLayersKeepTheirOwnGradients) {
  const nn::GPT model = built(small(), 3, DType::f64);
  const auto parameters = nn::parameters(model);
  const Tensor &first = named(parameters, "blocks.0.mlp.up.weight"),
               &second = named(parameters, "blocks.1.mlp.up.weight");
  ASSERT_EQ(first.type(), second.type());
  ASSERT_NE(first.to_bytes(), second.to_bytes());
  const auto r = rows(5);
  nn::token_loss(model(r.tokens), r.targets).backward();
  constexpr double kStep = 1e-6;
  for (size_t p = 0; p < parameters.size(); ++p) {
    const auto values = parameters[p].to_vector<double>(),
               gradient = parameters[p].grad().to_vector<double>();
    for (size_t i = 0; i < values.size(); i += 7) {
      double side[2];
      for (const int s : {0, 1}) {
        size_t at = 0;
        auto changed = nn::copy_as(DType::f64, model);
        const auto moved = [&](const nn::Field& f) {
          if (at++ != p) return f.tensor;
          auto v = values;
          v[i] += s ? kStep : -kStep;
          return Tensor::of(std::span<const double>(v), f.shape, DType::f64);
        };
        nn::replace(changed, moved, DType::f64);
        const NoGrad off;
        side[s] = nn::token_loss(changed(r.tokens), r.targets).item();
      }
      EXPECT_NEAR(gradient[i], (side[1] - side[0]) / (2 * kStep), 1e-7) << parameters[p].name() << " " << i;
    }
  }
}

TEST_F(Models, EqualLayersAreUpdatedApart) {
  nn::GPT model = built(small(), 3);
  nn::AdamW optimizer(nn::parameters(model));
  const auto before = nn::copy_as(DType::f32, model);
  losses(model, optimizer, 0, 3);
  const auto now = nn::parameters(model), then = nn::parameters(before);
  for (size_t i = 0; i < now.size(); ++i) EXPECT_NE(now[i].to_bytes(), then[i].to_bytes()) << now[i].name();
  EXPECT_NE(named(now, "blocks.0.mlp.up.weight").to_bytes(), named(now, "blocks.1.mlp.up.weight").to_bytes());
}

// The first AdamW step by hand: with both moments corrected, it is rate * sign(g), and the decay.
TEST_F(Models, FirstAdamWStep) {
  Tensor p = Tensor::of({1.0, -2.0}, {2}, DType::f64);
  p.named("p").requires_grad(true);
  nn::AdamW optimizer({p}, {.weight_decay = 0.1});
  p.backward(Tensor::of({0.5, -3.0}, {2}, DType::f64));
  optimizer.step(Tensor::scalar(0.01, DType::f64));
  const auto v = p.to_vector<double>();
  EXPECT_NEAR(v[0], 1.0 * (1 - 0.001) - 0.01, 1e-9);
  EXPECT_NEAR(v[1], -2.0 * (1 - 0.001) + 0.01, 1e-9);
  EXPECT_FALSE(p.grad());
}

TEST_F(Models, DropoutOnlyInTraining) {
  auto config = small();
  config.dropout = 0.5;
  nn::GPT model = built(config, 1);
  const auto r = rows(1);
  const NoGrad off;
  EXPECT_EQ(model(r.tokens).to_bytes(), model(r.tokens).to_bytes());
  const auto still = nn::states(model)[0].to_bytes();
  nn::set_training(model, true);
  EXPECT_NE(model(r.tokens).to_bytes(), model(r.tokens).to_bytes());
  EXPECT_NE(nn::states(model)[0].to_bytes(), still);
}

TEST_F(Models, AWholeStepIsOneGraph) {
  auto config = small();
  config.dropout = 0.1;
  nn::GPT model = built(config, 1);
  nn::AdamW optimizer(nn::parameters(model));
  nn::set_training(model, true);
  const auto before = nn::parameters(model)[1].to_bytes();
  const Dim batch = Dim::symbol("batch", 1, 512);
  const auto traced = trace(
      [&](const std::vector<Tensor>& in) {
        return std::vector<Tensor>{nn::train_step(model, optimizer, {in[0], in[1]}, in[2])};
      },
      {{"tokens", {DType::i32, {batch, kContext}}},
       {"targets", {DType::i32, {batch, kContext}}},
       {"rate", {DType::f32, {}}}});
  std::vector<std::string> names;
  for (const auto& s : traced.graph->states) names.push_back(s.name);
  auto expected = nn::parameters(model);
  for (const auto& list : {nn::states(model), optimizer.states()})
    expected.insert(expected.end(), list.begin(), list.end());
  EXPECT_EQ(names.size(), expected.size());
  for (const auto& t : expected)
    EXPECT_NE(std::find(names.begin(), names.end(), t.name()), names.end()) << t.name();
  EXPECT_TRUE(traced.weights.empty());
  EXPECT_NE(traced.text().find("blocks.1.mlp.up.linear"), std::string::npos) << traced.text();
  EXPECT_EQ(nn::parameters(model)[1].to_bytes(), before);  // tracing computes nothing
  EXPECT_FALSE(nn::parameters(model)[1].grad());
}

// A custom layer, and a model of such layers.
struct Scale : nn::Module {
  Tensor factor;
  void fields(nn::Fields& f) override { f.parameter("factor", factor, {3}, nn::Initial::normal(1)); }
  Tensor operator()(const Tensor& x) const { return x * nn::built(factor, "Scale.factor"); }
};
struct Scales : nn::Module {
  std::vector<Scale> parts{2};
  Tensor calls;
  void fields(nn::Fields& f) override {
    f.children("parts", parts);
    f.state("calls", calls, {}, DType::i64, nn::Initial::constant(7));
  }
};

TEST_F(Models, AModuleOfOnesOwn) {
  Scales model;
  nn::build(model, {.seed = 5, .dtype = DType::f64});
  const auto parameters = nn::parameters(model), states = nn::states(model);
  ASSERT_EQ(parameters.size(), 2u);
  ASSERT_EQ(states.size(), 1u);
  EXPECT_EQ(parameters[1].name(), "parts.1.factor");
  EXPECT_EQ(parameters[1].type(), (TensorType{DType::f64, {3}}));
  EXPECT_TRUE(parameters[1].requires_grad());
  EXPECT_EQ(states[0].name(), "calls");
  EXPECT_EQ(states[0].item(), 7);
  EXPECT_FALSE(states[0].requires_grad());
  EXPECT_EQ(nn::parameter_count(model), 6);
  EXPECT_NE(parameters[0].to_bytes(), parameters[1].to_bytes());

  // Initial values depend on the name, not on other parameters.
  Scales longer;
  longer.parts.resize(5);
  nn::build(longer, {.seed = 5, .dtype = DType::f64});
  EXPECT_EQ(longer.parts[1].factor.to_bytes(), parameters[1].to_bytes());
  Scales other = longer;
  EXPECT_THROW(nn::copy_fields(model, other, DType::f64), Error);
  other.parts.resize(1);
  EXPECT_THROW(nn::copy_fields(longer, other, DType::f64), Error);

  nn::set_training(model, true);
  EXPECT_TRUE(model.parts[1].training);
  const Scales narrow = nn::copy_as(DType::f32, model);
  EXPECT_FALSE(narrow.parts[1].training);
  EXPECT_EQ(narrow.parts[0].factor.dtype(), DType::f32);
  EXPECT_EQ(narrow.calls.item(), 7);
  EXPECT_EQ(model.parts[0].factor.dtype(), DType::f64);
}

TEST_F(Models, EvaluationForeseesEachTokenOnce) {
  nn::GPT model = built(small(), 4, DType::f64);
  nn::set_training(model, true);
  std::vector<int32_t> text;
  for (uint64_t i = 0; i < 14; ++i) text.push_back(static_cast<int32_t>(random_word(9, i) % kVocabulary));
  double sum = 0;
  for (size_t at = 0; at < 13; at += 4) {
    const size_t n = std::min<size_t>(4, 13 - at);
    const auto part = [&](size_t from) {
      return ids({text.begin() + static_cast<std::ptrdiff_t>(from),
                  text.begin() + static_cast<std::ptrdiff_t>(from + n)},
                 {1, static_cast<int64_t>(n)});
    };
    sum += nn::token_loss(model(part(at)), part(at + 1)).item() * static_cast<double>(n);
  }
  for (const int64_t batch : {1, 2, 8}) {
    const auto e = nn::evaluate(model, text, batch);
    EXPECT_EQ(e.tokens, 13);
    EXPECT_NEAR(e.loss, sum / 13, 1e-12);
    EXPECT_NEAR(e.perplexity(), std::exp(sum / 13), 1e-9);
  }
  EXPECT_TRUE(model.training);  // as it was
  EXPECT_THROW(nn::evaluate(model, std::span(text).first(1)), Error);
  EXPECT_THROW(nn::evaluate(model, text, 0), Error);
}

TEST_F(Models, TheFirstThatIsNotFiniteIsNamed) {
  const Tensor x = Tensor::of({1, 200}, {2});
  const auto lost = [](const std::vector<Tensor>& in) {
    const Scope here("part");
    const Tensor wide = exp(in[0]);
    return std::vector<Tensor>{sqrt(wide - wide)};
  };
  const auto bad = first_not_finite(lost, {x});
  ASSERT_TRUE(bad);
  EXPECT_EQ(bad->where, "part.sub");  // an infinity before it may be meant
  EXPECT_TRUE(bad->nan);
  EXPECT_FALSE(bad->given);
  EXPECT_EQ(bad->count, 1);
  const auto infinite = first_not_finite([](const auto& in) { return std::vector<Tensor>{exp(in[0])}; }, {x});
  ASSERT_TRUE(infinite);
  EXPECT_EQ(infinite->where, "exp");
  EXPECT_FALSE(infinite->nan);
  EXPECT_FALSE(first_not_finite([](const auto& in) { return std::vector<Tensor>{tanh(in[0])}; }, {x}));
  // A missing parameter is named, and states are unchanged.
  Tensor w = Tensor::of({1, NAN}, {2}).named("w");
  const Tensor state = Tensor::of({5, 0}, {2}, DType::u64).named("random");
  const auto before = state.to_bytes();
  const auto given = first_not_finite(
      [&](const auto& in) { return std::vector<Tensor>{dropout(in[0], state, 0.5) * w}; }, {x});
  ASSERT_TRUE(given);
  EXPECT_EQ(given->where, "w");
  EXPECT_TRUE(given->given);
  EXPECT_EQ(state.to_bytes(), before);
}

TEST_F(Models, WrongShapesSaySo) {
  const nn::GPT model = built(small(), 1);
  try {
    (void)model(ids({0, 1, 2, 3, 4}, {1, 5}));
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "invalid argument: GPT: tokens must be [batch, up to 4], got i32[1, 5]");
  }
  EXPECT_THROW(nn::GPT({.vocabulary = 0}), Error);
  EXPECT_THROW(nn::GPT({.vocabulary = 5, .dropout = 1}), Error);
  EXPECT_THROW(nn::AdamW({Tensor::scalar(1)}), Error);  // no name
}

}  // namespace
}  // namespace weft::models_test
