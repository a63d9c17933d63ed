#include <fmt/format.h>

#include "cases.h"
#include "seam/device.h"
#include "seam/registry.h"
#include "weft/jit.h"
#include "weft/models.h"
#include "weft/ops.h"
#include "weft/policy_scope.h"

namespace weft::speed {
namespace {

constexpr size_t kFirstLosses = 8;  // losses that are compared
constexpr double kRate = 1e-3;

/// A model, its input and targets, and an optimizer; created again for each way to take steps.
struct Training {
  std::function<Tensor(const Tensor& in)> model;
  std::vector<Tensor> parameters;
  nn::Example batch;
  std::vector<double> numbers;  // for the peers: sizes, then the optimiser's
  nn::AdamWConfig adam;
};
using MakeTraining = std::function<Training()>;

std::vector<int64_t> some_tokens(int64_t n, int64_t vocabulary, int64_t seed) {
  std::vector<int64_t> t;
  for (int64_t i = 0; i < n; ++i) t.push_back((i * i * 31 + i * 7919 + seed) % vocabulary);
  return t;
}
Tensor index(const std::vector<int64_t>& values, std::vector<int64_t> shape) {
  return Tensor::of(std::span<const int64_t>(values), shape, DType::i64);
}
void add_optimizer(Training& t) {
  t.numbers.insert(t.numbers.end(), {kRate, t.adam.beta1, t.adam.beta2, t.adam.epsilon, t.adam.weight_decay});
}

Training gpt(const nn::GPTConfig& config, int64_t batch) {
  const auto model = std::make_shared<nn::GPT>(config);
  nn::build(*model, {.seed = 7});
  Training t;
  t.model = [model](const Tensor& in) { return (*model)(in); };
  t.parameters = nn::parameters(*model);
  const std::vector<int64_t> shape{batch, config.context};
  const int64_t n = batch * config.context;
  t.batch = {index(some_tokens(n, config.vocabulary, 1), shape),
             index(some_tokens(n, config.vocabulary, 5), shape)};
  t.numbers = {static_cast<double>(config.heads), static_cast<double>(config.layers)};
  add_optimizer(t);
  return t;
}

Training small() { return gpt({.vocabulary = 65, .context = 64, .layers = 4, .heads = 4, .width = 128}, 12); }

struct Mlp : nn::Module {
  nn::Linear hidden{64, 64}, out{64, 10};
  void fields(nn::Fields& f) override { f.child("hidden", hidden), f.child("out", out); }
};

Training mlp() {
  const auto model = std::make_shared<Mlp>();
  nn::build(*model, {.seed = 7});
  Training t;
  t.model = [model](const Tensor& in) { return model->out(relu(model->hidden(in))); };
  t.parameters = nn::parameters(*model);
  const Operand x = random_operand({32, 64}, 50);
  t.batch = {Tensor::from_bytes(std::as_bytes(std::span(x.values)), x.shape, DType::f32),
             index(some_tokens(32, 10, 3), {32})};
  add_optimizer(t);
  return t;
}

/// A task whose result is the losses of its first steps.
Task recorded(std::function<Tensor()> step) {
  const auto losses = std::make_shared<std::vector<float>>();
  return {[=] {
            const Tensor loss = step();
            if (losses->size() < kFirstLosses) losses->push_back(static_cast<float>(loss.item()));
          },
          [=] { return *losses; }};
}

std::function<Tensor()> eager_step(const Training& t) {
  const auto adam = std::make_shared<nn::AdamW>(t.parameters, t.adam);
  return [t, adam, rate = Tensor::scalar(kRate)] { return nn::train_step(t.model, *adam, t.batch, rate); };
}

std::shared_ptr<Compiled> compiled_training(const Training& t) {
  const auto adam = std::make_shared<nn::AdamW>(t.parameters, t.adam);
  return std::make_shared<Compiled>(compile(
      [&](const std::vector<Tensor>& in) -> std::vector<Tensor> {
        return {nn::train_step(t.model, *adam, {in[0], in[1]}, in[2])};
      },
      {{"input", t.batch.input.type()}, {"target", t.batch.target.type()}, {"rate", {DType::f32, {}}}},
      {.policy = current_policy()}));
}
std::vector<Tensor> inputs_of(const Training& t) {
  return {t.batch.input, t.batch.target, Tensor::scalar(kRate)};
}
std::function<Tensor()> compiled_step(const Training& t) {
  return [program = compiled_training(t), in = inputs_of(t)] { return (*program)(in)[0]; };
}

std::vector<Operand> operands_of(const Training& t) {
  std::vector<Operand> all;
  const auto add = [&](const Tensor& x) {
    const auto sizes = x.sizes();
    Operand o{{sizes.begin(), sizes.end()}, {}, {}};
    if (is_float(x.dtype()))
      o.values = x.to_vector<float>();
    else
      o.indices = x.to_vector<int64_t>();
    all.push_back(std::move(o));
  };
  for (const auto& p : t.parameters) add(p);
  add(t.batch.input), add(t.batch.target);
  return all;
}

using Peers = std::function<std::vector<PeerTask>(const std::vector<Operand>&, const std::vector<double>&)>;

/// Eager and compiled against the peers: the better one counts.
Group steps_of(std::string name, int threads, double reach, const MakeTraining& make, const Peers& peers) {
  Group g{std::move(name), threads, reach, 0, {}, true, {}};
  const auto theirs = [make, peers] {
    const Training t = make();
    // The peers read their operands in place.
    const auto operands = std::make_shared<std::vector<Operand>>(operands_of(t));
    auto tasks = peers(*operands, t.numbers);
    for (auto& p : tasks) p.task.run = [operands, run = p.task.run] { run(); };
    return tasks;
  };
  g.cases.push_back({"", "eager", [make] { return recorded(eager_step(make())); }, theirs});
  g.cases.push_back({"", "compiled", [make] { return recorded(compiled_step(make())); }, theirs});
  return g;
}

Peers eager_peer(const std::string& op) {
  return [op](const std::vector<Operand>& x, const std::vector<double>& a) { return peer_tasks(op, x, a); };
}

/// The peak memory of one eager step beyond the memory between steps, as allocated and as requested by
/// tensors; the compiled program's arena; and PyTorch's.
std::vector<Amount> memory_of(const std::string& what, const MakeTraining& make, const std::string& op) {
  std::vector<Amount> out;
  auto& device = *value_or_raise(seam::registry().open("native"));
  const Training t = make();
  const auto step = eager_step(t);
  step();
  device.trim();
  const seam::MemoryUse before = device.begin_peak();
  step();
  const seam::MemoryUse after = device.peak();
  const auto taken = static_cast<double>(after.taken - before.taken),
             asked = static_cast<double>(after.asked - before.asked);
  out.push_back({what + ", eager", taken, asked, "largest live sum", 1.1});
  const Training again = make();
  const auto program = compiled_training(again);
  (*program)(inputs_of(again));
  const auto [arena, live] = program->arena();
  out.push_back(
      {what + ", compiled", static_cast<double>(arena), static_cast<double>(live), "largest live sum", 1.1});
  const auto operands = operands_of(again);
  for (const auto& p : peer_tasks(op, operands, again.numbers)) {
    if (!p.peak_bytes) continue;
    p.task.run();
    const double theirs = p.peak_bytes();
    out.push_back({what + ", eager", taken, theirs, p.library, 1.0});
    out.push_back({what + ", compiled", static_cast<double>(arena), theirs, p.library, 1.0});
  }
  return out;
}

}  // namespace

std::vector<Case> small_training_steps() {
  return {{"", "GPT 4 x 128, a step, eager", [] { return recorded(eager_step(small())); }, {}},
          {"", "GPT 4 x 128, a step, compiled", [] { return recorded(compiled_step(small())); }, {}}};
}

std::vector<Group> training_groups(int threads) {
  const MakeTraining large = [] {
    return gpt({.vocabulary = 256, .context = 256, .layers = 6, .heads = 6, .width = 384}, 16);
  };
  std::vector<Group> all = {
      steps_of("training GPT 4 x 128, batch 12 x 64", threads, 1.2, small, eager_peer("train_gpt")),
      steps_of("training GPT 4 x 128 beside torch.compile", threads, 0.9, small,
               [threads](const auto& x, const auto& a) { return compiled_peer(x, a, threads); }),
      steps_of("training GPT 6 x 384, batch 16 x 256", threads, 0.8, large, eager_peer("train_gpt")),
      steps_of("training MLP 64-64-10, batch 32", threads, 3, mlp, eager_peer("train_mlp"))};
  Group memory{"training memory", threads, 1, 0, {}, false, {}};
  memory.amounts = [large] {
    auto rows = memory_of("GPT 4 x 128", small, "train_gpt");
    for (auto& r : memory_of("GPT 6 x 384", large, "train_gpt")) rows.push_back(std::move(r));
    return rows;
  };
  all.push_back(std::move(memory));
  return all;
}

}  // namespace weft::speed
