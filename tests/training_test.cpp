#include <optional>

#include "conformance/noise.h"
#include "test_backends.h"
#include "training_rig.h"
#include "weft/jit.h"
#include "weft/ops.h"
#include "weft/sequential.h"

// Training: as PyTorch does it (scripts/train_oracle), in halves, with accumulation, and compiled.
namespace weft::training_test {
namespace {

using namespace testing;  // NOLINT: the small models that are trained

constexpr nn::AdamWConfig kAdamW = {.weight_decay = 0.01, .clip = 0.5};
constexpr nn::SGDConfig kSGD = {.momentum = 0.9, .weight_decay = 0.01, .clip = 0.5};
constexpr nn::SGDConfig kNesterov = {.momentum = 0.9, .nesterov = true, .clip = 0.5};
nn::AdamW optimizer_of(const nn::Module& m, const nn::AdamWConfig& c) {
  return nn::AdamW(nn::parameters(m), c);
}
nn::SGD optimizer_of(const nn::Module& m, const nn::SGDConfig& c) { return nn::SGD(nn::parameters(m), c); }

template <class M>
constexpr bool kOfImages = !std::derived_from<M, nn::LanguageModel>;

// At 5e-3, rounding alone leads a ResNet in f32 elsewhere.
template <class M>
Tensor rate_of(const nn::AdamWConfig&, DType t) {
  return Tensor::scalar(kOfImages<M> ? 2e-3 : 5e-3, t == DType::f64 ? t : DType::f32);
}
template <class M>
Tensor rate_of(const nn::SGDConfig&, DType t) {
  return Tensor::scalar(0.05, t == DType::f64 ? t : DType::f32);
}

template <class M>
nn::Example batch_of(uint64_t step, DType dtype) {
  return kOfImages<M> ? image_batch(step, dtype) : token_batch(step);
}

/// The loss of each step; for images one more, that of the next batch when training is over.
template <class M, class Config>
std::vector<double> losses(M model, DType dtype, const Config& config) {
  nn::replace(model, first_weight, dtype);
  auto optimizer = optimizer_of(model, config);
  nn::set_training(model, true);
  std::vector<double> out;
  for (uint64_t i = 0; i < kSteps; ++i) {
    const auto b = batch_of<M>(i, dtype);
    out.push_back(nn::train_step(model, optimizer, b, rate_of<M>(config, dtype)).item());
  }
  if (!kOfImages<M>) return out;
  nn::set_training(model, false);
  const NoGrad off;
  const auto b = batch_of<M>(kSteps, dtype);
  out.push_back(nn::token_loss(model(b.input), b.target).item());
  return out;
}

double most_apart(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) throw std::logic_error(fmt::format("{} losses and {}", a.size(), b.size()));
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

nn::Sequential sequential() {
  return nn::Sequential(
      nn::Conv2d({.in = kChannels, .out = 4, .padding = 1}), relu,
      [](const Tensor& x) { return max_pool(x, {2, 2}); }, nn::flatten,
      nn::Linear(4 * (kSize / 2) * (kSize / 2), kClasses));
}

class LikePyTorch : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { set_default_backend(GetParam()); }
  void TearDown() override { set_default_backend("native"); }

  template <class M, class Config>
  void expect_close(const char* what, const M& model, const Config& config) {
    for (const DType dtype : {DType::f64, DType::f32}) {
      const auto want = pytorch(fmt::format("{} {}", what, name(dtype)));
      ASSERT_LT(want[kSteps - 1], want[0] / 3) << what << " does not learn";
      const double apart = most_apart(losses(model, dtype, config), want);
      EXPECT_LE(apart, dtype == DType::f64 ? 1e-10 : 2e-5) << what << " " << name(dtype);
      std::printf("[training] %s %s: %s within %.1e of PyTorch\n", GetParam(), name(dtype), what, apart);
    }
  }
};

TEST_P(LikePyTorch, GPTLearns) { expect_close("GPT", nn::GPT(gpt()), kAdamW); }
TEST_P(LikePyTorch, LlamaLearns) { expect_close("Llama", nn::Llama(llama()), kAdamW); }
TEST_P(LikePyTorch, ResNetLearns) {
  expect_close("ResNet", nn::ResNet(resnet()), kAdamW);
  expect_close("ResNet sgd", nn::ResNet(resnet()), kSGD);
}
TEST_P(LikePyTorch, SequentialLearns) { expect_close("Sequential nesterov", sequential(), kNesterov); }

// Two runs in halves go apart: what rounding does to PyTorch's own says how far.
TEST_P(LikePyTorch, HalvesLearnOnMasters) {
  const auto check = [](const char* what, const auto& model) {
    const auto half = pytorch(std::string(what) + " bf16"), wide = pytorch(std::string(what) + " f64");
    const double apart = most_apart(losses(model, DType::bf16, kAdamW), half), own = most_apart(half, wide);
    EXPECT_LE(apart, 2 * own) << what;
    std::printf("[training] %s bf16: %s within %.1e of PyTorch, which rounding leads %.1e away\n", GetParam(),
                what, apart, own);
  };
  check("GPT", nn::GPT(gpt()));
  check("ResNet", nn::ResNet(resnet()));
}
INSTANTIATE_TEST_SUITE_P(On, LikePyTorch, ::testing::Values("reference", "native"),
                         [](const auto& i) { return std::string(i.param); });

// Tests the bound: each of these mistakes trains just as well, and must exceed it.
TEST(LikePyTorchFaults, AreSeen) {
  set_default_backend("native");
  const auto apart = [](const char* what, const auto& model, const auto& config) {
    return most_apart(losses(model, DType::f64, config), pytorch(what));
  };
  auto tanh = gpt(), epsilon = gpt();
  tanh.activation = nn::Activation::gelu_tanh;
  epsilon.epsilon = 1e-6;
  nn::AdamWConfig clip = kAdamW;
  clip.clip_epsilon = 0;
  EXPECT_GT(apart("GPT f64", nn::GPT(tanh), kAdamW), 1e-10);
  EXPECT_GT(apart("GPT f64", nn::GPT(epsilon), kAdamW), 1e-10);
  EXPECT_GT(apart("GPT f64", nn::GPT(gpt()), clip), 1e-10);
  nn::SGDConfig plain = kNesterov;
  plain.nesterov = false;
  EXPECT_GT(apart("Sequential nesterov f64", sequential(), plain), 1e-10);
}

/// Even from +-0.5, by name and in `dtype`.
Tensor drawn(uint64_t seed, DType dtype) {
  const int64_t shape[] = {5};
  return tensor_of(noise(seed, 5), shape, dtype);
}

// 20 steps along gradients that don't depend on the parameters, as scripts/train_oracle takes them.
std::vector<Tensor> after_steps(const std::function<void(std::vector<Tensor>&)>& step) {
  std::vector<Tensor> parameters;
  for (const DType t : {DType::bf16, DType::f16, DType::f32}) {
    parameters.push_back(drawn(parameters.size(), t));
    parameters.back().named(name(t)).requires_grad(true);
  }
  for (uint64_t i = 0; i < 20; ++i) {
    for (uint64_t k = 0; k < parameters.size(); ++k)
      parameters[k].backward(drawn(100 + 10 * i + k, parameters[k].dtype()));
    step(parameters);
  }
  return parameters;
}

TEST(Masters, HoldWhatHalvesWouldLose) {
  set_default_backend("native");
  const auto want = pytorch("masters");
  std::optional<nn::AdamW> optimizer;
  const auto halves = after_steps([&](std::vector<Tensor>& p) {
    if (!optimizer) optimizer.emplace(p, kAdamW);
    optimizer->step(Tensor::scalar(1e-4));
  });
  std::vector<Tensor> masters;
  for (const Tensor& t : optimizer->states())
    if (t.name().ends_with(".master")) masters.push_back(t);
  ASSERT_EQ(masters.size(), 2u) << "f32 has none";
  EXPECT_EQ(masters[0].name(), "adamw.bf16.master");
  masters.push_back(halves[2]);
  double most = 0;
  for (size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(cast(masters[k], halves[k].dtype()).to_bytes(), halves[k].to_bytes()) << halves[k].name();
    const auto got = masters[k].to_vector<double>();
    for (size_t i = 0; i < 5; ++i) most = std::max(most, std::abs(got[i] - want[5 * k + i]));
  }
  EXPECT_LE(most, 20 * 0x1p-24) << "each step rounds numbers below 1 to f32";
  // Without them, most steps are less than half a unit in the last place of bf16: the numbers stay.
  const int64_t shape[] = {5};
  const auto zeros = [&](std::span<const int64_t> s) { return tensor_of({0, 0, 0, 0, 0}, s, DType::bf16); };
  const Tensor mean = zeros(shape), square = zeros(shape), a = Tensor::scalar(0, DType::bf16),
               b = Tensor::scalar(0, DType::bf16), rate = Tensor::scalar(1e-4, DType::bf16);
  const auto lost = after_steps([&](std::vector<Tensor>& p) {
    const NoGrad off;
    adamw_step(p[0], p[0].grad(), mean, square, rate, a, b, 0.9, 0.99, 1e-8, 0.01);
    p[0].clear_grad();
  });
  EXPECT_NE(lost[0].to_bytes(), halves[0].to_bytes());
}

TEST(Accumulation, PartsGiveTheStepOfTheWhole) {
  set_default_backend("native");
  const Tensor rate = Tensor::scalar(5e-3, DType::f64);
  nn::GPT whole(gpt()), parts(gpt());
  nn::replace(whole, first_weight, DType::f64), nn::replace(parts, first_weight, DType::f64);
  auto a = optimizer_of(whole, kAdamW), b = optimizer_of(parts, kAdamW);
  for (uint64_t i = 0; i < 10; ++i) {
    const auto rows = token_batch(i);
    std::vector<nn::Example> each;
    for (const int64_t row : {0, 1})
      each.push_back({slice(rows.input, 0, row, row + 1), slice(rows.target, 0, row, row + 1)});
    const double want = nn::train_step(whole, a, rows, rate).item();
    EXPECT_NEAR(nn::train_step(parts, b, each, rate).item(), want, 1e-12) << i;
  }
  // As one program too: its states go on from what they are.
  const auto r = token_batch(0);
  const Tensor halves[] = {slice(r.input, 0, 0, 1), slice(r.target, 0, 0, 1), slice(r.input, 0, 1, 2),
                           slice(r.target, 0, 1, 2)};
  std::vector<InputSpec> specs = {{"rate", rate.type()}};
  for (const Tensor& t : halves) specs.push_back({fmt::format("half{}", specs.size()), t.type()});
  Compiled program = compile(
      [&](const std::vector<Tensor>& in) {
        const nn::Example each[] = {{in[1], in[2]}, {in[3], in[4]}};
        return std::vector<Tensor>{nn::train_step(parts, b, each, in[0])};
      },
      specs);
  const double want = nn::train_step(whole, a, r, rate).item();
  EXPECT_NEAR(program({rate, halves[0], halves[1], halves[2], halves[3]})[0].item(), want, 1e-12);
  EXPECT_NEAR(program.state("norm.weight").to_vector<double>()[0],
              nn::parameters(whole).end()[-2].to_vector<double>()[0], 1e-12);

  const nn::Example uneven[] = {{r.input, r.target}, {slice(r.input, 0, 0, 1), slice(r.target, 0, 0, 1)}};
  EXPECT_EQ(error_of([&] { (void)nn::train_step(parts, b, uneven, rate); }),
            "invalid argument: train_step: parts of a batch must be alike, got i32[2, 8] with i32[2, 8], and "
            "i32[1, 8] with i32[1, 8]");
  EXPECT_NE(error_of([&] {
              (void)nn::train_step(parts, b, std::vector<nn::Example>{}, rate);
            }).find("at least one part"),
            std::string::npos);
}

// As the documentation of Optimizer shows it.
class SignDescent : public nn::Optimizer {
 public:
  explicit SignDescent(std::vector<Tensor> p) : Optimizer("sign", std::move(p), {}, {}) {}

 private:
  void update(const Slot& s, const Tensor& gradient, const Tensor& rate) override {
    assign(s.value, s.value - sign(gradient) * rate);
  }
};

TEST(Optimizers, OneOfOnesOwnMovesHalvesToo) {
  set_default_backend("native");
  Tensor p = Tensor::of({1, -1}, {2}, DType::bf16);
  p.named("p").requires_grad(true);
  SignDescent optimizer({p});
  for (int i = 0; i < 4; ++i) {
    p.backward(Tensor::of({3, -0.5}, {2}, DType::bf16));
    optimizer.step(Tensor::scalar(0x1p-10));
  }
  EXPECT_EQ(p.to_vector<double>(), (std::vector<double>{1 - 0x1p-8, -1 + 0x1p-8}));
  ASSERT_EQ(optimizer.states().size(), 1u);
  EXPECT_EQ(optimizer.states()[0].name(), "sign.p.master");
}

TEST(Optimizers, SayWhatIsWrong) {
  Tensor p = Tensor::scalar(1).named("p"), q = Tensor::scalar(2).named("q");
  p.requires_grad(true), q.requires_grad(true);
  nn::SGD optimizer({p, q}, {.momentum = 0.9});
  EXPECT_EQ(error_of([&] { optimizer.step(Tensor::scalar(0.1)); }),
            "invalid argument: sgd: no parameter has a gradient; call backward() on a loss that uses them");
  const Tensor namesake = Tensor::of({1, 2}, {2}).named("p");
  EXPECT_NE(
      error_of([&] { nn::SGD({p, namesake}); }).find("two parameters are named 'p', of f32[] and f32[2]"),
      std::string::npos);
  EXPECT_NE(error_of([&] { nn::SGD({Tensor::scalar(1)}); }).find("sgd: a parameter of f32[] has no name"),
            std::string::npos);
  EXPECT_NE(error_of([&] { nn::SGD({p}, {.nesterov = true}); }).find("nesterov wants a momentum above 0"),
            std::string::npos);
  EXPECT_NE(error_of([&] { nn::AdamW({p}, {.clip = -1}); }).find("clip must be a norm of at least 0, got -1"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              optimizer.replace_states([](const Tensor&) { return Tensor::of({1, 2}, {2}); });
            }).find("sgd.p.velocity is f32[], got f32[2]"),
            std::string::npos);
}

TEST(Schedules, GoUpAndDown) {
  const nn::Schedule cosine{.rate = 2, .warmup = 4, .least = 0.1};
  EXPECT_DOUBLE_EQ(cosine.at(0, 0), 0.5);
  EXPECT_DOUBLE_EQ(cosine.at(3, 0), 2);
  EXPECT_DOUBLE_EQ(cosine.at(100, 0.5), 2 * 0.55);
  EXPECT_DOUBLE_EQ(cosine.at(100, 0.25), 2 * (0.1 + 0.45 * (1 + std::sqrt(0.5))));
  EXPECT_DOUBLE_EQ(cosine.at(100, 1), 0.2);
  EXPECT_DOUBLE_EQ(cosine.at(100, 7), 0.2) << "a clock may run over";
  const nn::Schedule linear{.kind = nn::ScheduleKind::linear, .rate = 2, .least = 0};
  EXPECT_DOUBLE_EQ(linear.at(0, 0.25), 1.5);
  const nn::Schedule constant{.kind = nn::ScheduleKind::constant, .rate = 2};
  EXPECT_DOUBLE_EQ(constant.at(0, 0.9), 2);
  EXPECT_EQ(nn::name(constant.kind), "constant");
}

// One program for a whole step: forward, gradients, clipping, update, running statistics.
template <class M, class Config = nn::AdamWConfig>
struct WholeStep {
  WholeStep(const M& like, DType t, const Config& c) : model(like), dtype(t), config(c) {
    nn::replace(model, first_weight, dtype);
    nn::set_training(model, true);
    optimizer.emplace(optimizer_of(model, config));
  }
  std::vector<Tensor> inputs(uint64_t step) const {
    const auto b = batch_of<M>(step, dtype);
    return {b.input, b.target, rate_of<M>(config, dtype)};
  }
  std::vector<Tensor> operator()(const std::vector<Tensor>& in) {
    return {nn::train_step(model, *optimizer, {in[0], in[1]}, in[2])};
  }
  Compiled compiled() {
    std::vector<InputSpec> specs;
    for (const Tensor& t : inputs(0)) specs.push_back({fmt::format("input{}", specs.size()), t.type()});
    return compile([this](const std::vector<Tensor>& in) { return (*this)(in); }, specs);
  }
  std::vector<Tensor> all() const {
    auto list = nn::parameters(model);
    for (const auto& more : {nn::states(model), optimizer->states()})
      list.insert(list.end(), more.begin(), more.end());
    return list;
  }

  M model;
  DType dtype;
  Config config;
  std::optional<decltype(optimizer_of(std::declval<M>(), std::declval<Config>()))> optimizer;
};

template <class M, class Config>
void expect_equal_bits(const M& model, DType dtype, const Config& config) {
  set_default_backend("reference");
  WholeStep<M, Config> eager(model, dtype, config), traced(model, dtype, config);
  Compiled program = traced.compiled();
  for (uint64_t i = 0; i < 20; ++i) {
    const auto in = eager.inputs(i);
    ASSERT_EQ(program(in)[0].to_bytes(), eager(in)[0].to_bytes()) << "step " << i;
  }
  for (const Tensor& t : eager.all()) EXPECT_EQ(program.state(t.name()).to_bytes(), t.to_bytes()) << t.name();
  set_default_backend("native");
}

TEST(CompiledTraining, IsEagerTrainingBitForBit) {
  expect_equal_bits(nn::GPT(gpt()), DType::f32, kAdamW);
  expect_equal_bits(nn::GPT(gpt()), DType::bf16, kAdamW);
  expect_equal_bits(nn::Llama(llama()), DType::f32, kAdamW);
  expect_equal_bits(nn::ResNet(resnet()), DType::f32, kAdamW);
  expect_equal_bits(nn::ResNet(resnet()), DType::bf16, kNesterov);
}

// 20 steps as one graph: what rounding does to the last of them, it may do to a program that took them one by
// one.
template <class M>
void expect_within_noise(const char* what, const M& model) {
  constexpr uint64_t kSome = 20;
  WholeStep<M> traced(model, DType::f32, kAdamW), stepped(model, DType::f32, kAdamW);
  std::vector<InputSpec> specs;
  std::vector<conformance::Array> values;
  const auto enter = [&](const Tensor& t) { values.push_back(conformance::from_tensor(t)); };
  for (uint64_t i = 0; i < kSome; ++i)
    for (const Tensor& t : traced.inputs(i)) {
      specs.push_back({fmt::format("input{}", specs.size()), t.type()});
      enter(t);
    }
  const Traced steps = trace(
      [&](const std::vector<Tensor>& in) {
        std::vector<Tensor> out;
        for (uint64_t i = 0; i < kSome; ++i)
          out.push_back(traced({in[3 * i], in[3 * i + 1], in[3 * i + 2]})[0]);
        return out;
      },
      specs);
  for (const auto* list : {&steps.states, &steps.weights})
    for (const Tensor& t : *list) enter(t);
  const auto bounds = [&] {
    const OnBackend reference("reference");  // where ops without operands go
    return value_or_raise(conformance::noise_bound(*steps.graph, values));
  }();
  Compiled program = stepped.compiled();
  double worst = 0;
  for (uint64_t i = 0; i < kSome; ++i) {
    const auto loss = conformance::from_tensor(program(stepped.inputs(i))[0]);
    const auto verdict = conformance::judge(loss, bounds[i]);
    EXPECT_TRUE(verdict.ok) << what << ", step " << i << ": " << verdict.reason;
    worst = std::max(worst, static_cast<double>(verdict.worst));
  }
  auto config = kAdamW;
  config.weight_decay = 0.02;
  WholeStep<M> wrong(model, DType::f32, config);
  Tensor last;
  for (uint64_t i = 0; i < kSome; ++i) last = wrong(wrong.inputs(i))[0];
  EXPECT_FALSE(conformance::judge(conformance::from_tensor(last), bounds.back()).ok)
      << what << ": another decay went unseen";
  std::printf("[training] %s compiled: at most %.2f of what noise allows\n", what, worst);
}

TEST(CompiledTraining, OnNativeIsWithinTheNoise) {
  set_default_backend("native");
  // Smaller still: eight noisy runs of 20 steps, each number of them on its way through long double.
  auto tiny_gpt = gpt();
  auto tiny_llama = llama();
  auto tiny_resnet = resnet();
  tiny_gpt.layers = 1, tiny_gpt.heads = 2, tiny_gpt.width = 8;
  tiny_llama.layers = 1, tiny_llama.heads = 2, tiny_llama.kv_heads = 1, tiny_llama.width = 8,
  tiny_llama.hidden = 8;
  tiny_resnet.widths = {2, 3};
  expect_within_noise("GPT", nn::GPT(tiny_gpt));
  expect_within_noise("Llama", nn::Llama(tiny_llama));
  expect_within_noise("ResNet", nn::ResNet(tiny_resnet));
}

TEST(Vision, ResNetIsThatOfThePaper) {
  set_default_backend("native");
  nn::ResNet resnet20{{}}, resnet110({.blocks = 18});
  EXPECT_EQ(nn::parameter_count(resnet20), 269722);    // table 6: 0.27M
  EXPECT_EQ(nn::parameter_count(resnet110), 1727962);  // 1.7M
  nn::build(resnet20);
  for (const Tensor& p : nn::parameters(resnet20)) {
    if (p.rank() != 4) continue;
    double squares = 0;
    for (const double v : p.to_vector<double>()) squares += v * v;
    const auto sizes = p.sizes();
    const auto n = static_cast<double>(element_count(sizes)), fan_in = static_cast<double>(sizes[1] * 9);
    EXPECT_NEAR(squares / n / (2 / fan_in), 1, 4 * std::sqrt(2 / n)) << p.name();
  }
  const NoGrad off;
  const auto image = [](int64_t channels, int64_t height, int64_t width) {
    return full(0.5, {1, channels, height, width}, DType::f32);
  };
  EXPECT_EQ(text(resnet20(image(3, 32, 32)).type()), "f32[1, 10]");
  EXPECT_EQ(text(resnet20(image(3, 7, 9)).type()), "f32[1, 10]") << "sizes that don't halve";
  nn::ResNet tiny(resnet());
  nn::build(tiny);
  Compiled program =
      compile([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{tiny(in[0])}; },
              {{"images", {DType::f32, {Dim::symbol("batch", 1, 64), kChannels, kSize, kSize}}}});
  const Tensor images = image_batch(0, DType::f32).input, got = program({images})[0], want = tiny(images);
  for (size_t i = 0; i < got.to_vector<float>().size(); ++i)
    EXPECT_NEAR(got.to_vector<float>()[i], want.to_vector<float>()[i], 1e-5) << "any number of images";
  EXPECT_EQ(error_of([&] { (void)resnet20(image(1, 8, 8)); }),
            "invalid argument: ResNet: images must be [batch, 3, height, width], got f32[1, 1, 8, 8]");
  EXPECT_NE(error_of([] { nn::ResNet({.widths = {8, 4}}); }).find("at least that before it"),
            std::string::npos);
  EXPECT_NE(error_of([] { nn::ResNet({.blocks = 0}); }).find("sizes must be at least 1"), std::string::npos);
  EXPECT_NE(error_of([] { nn::Conv2d({.in = 3, .out = 4, .groups = 2}); }).find("2 groups don't divide 3"),
            std::string::npos);
  EXPECT_NE(error_of([] { nn::Conv2d({.in = 3}); }).find("sizes must be at least 1"), std::string::npos);
}

TEST(Vision, BatchNormKeepsItsStatisticsInFloats) {
  set_default_backend("native");
  nn::BatchNorm2d norm(2);
  nn::build(norm, {.dtype = DType::bf16});
  EXPECT_EQ(norm.weight.dtype(), DType::bf16);
  EXPECT_EQ(norm.running_mean.dtype(), DType::f32);
  const Tensor x = Tensor::of({1, 3, 5, 7}, {2, 2, 1, 1}, DType::bf16);
  EXPECT_EQ(norm(x).to_vector<double>(), x.to_vector<double>()) << "as built, it changes nothing";
  nn::set_training(norm, true);
  EXPECT_EQ(norm(x).to_vector<double>(), (std::vector<double>{-1, -1, 1, 1}));
  EXPECT_NEAR(norm.running_mean.to_vector<double>()[0], 0.3, 1e-7);                // 0.1 mean {1, 5}
  EXPECT_NEAR(norm.running_variance.to_vector<double>()[1], 0.9 + 0.1 * 8, 1e-6);  // over n - 1 of {3, 7}
  EXPECT_NE(error_of([&] { (void)norm(slice(x, 0, 0, 1)); }).find("more than one number a channel"),
            std::string::npos);
}

TEST(Vision, SequentialKeepsItsPartsByValue) {
  set_default_backend("native");
  nn::Sequential inner(nn::Linear(4, 4, false), relu), outer(inner, nn::Dropout(0.5), nn::Linear(4, 2));
  EXPECT_EQ(outer.size(), 3u);
  nn::build(outer, {.seed = 1});
  std::vector<std::string> names;
  for (const Tensor& p : nn::parameters(outer)) names.push_back(p.name());
  EXPECT_EQ(names, (std::vector<std::string>{"0.0.weight", "2.weight", "2.bias"}));
  EXPECT_THROW((void)nn::parameters(inner), Error) << "what was put in is a copy";
  const nn::Sequential wide = nn::copy_as(DType::f64, outer);
  const Tensor x = Tensor::of({1, -2, 3, 4}, {1, 4});
  const auto a = outer(x).to_vector<double>(), b = wide(cast(x, DType::f64)).to_vector<double>();
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-6);
  nn::set_training(outer, true);
  const auto still = nn::states(outer)[0].to_bytes();
  (void)outer(x);
  EXPECT_NE(nn::states(outer)[0].to_bytes(), still) << "dropout inside is on";
}

}  // namespace
}  // namespace weft::training_test
