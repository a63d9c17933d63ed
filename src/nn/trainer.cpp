#include "weft/trainer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "weft/ops.h"
#include "weft/policy_scope.h"

namespace weft::nn {
namespace {

Tensor on_default(std::span<const int32_t> values, int64_t rows, int64_t columns) {
  const int64_t shape[] = {rows, columns};
  return Tensor::of(values, shape, DType::i32);
}

DType rate_type(const TrainSettings& s) { return s.dtype == DType::f64 ? DType::f64 : DType::f32; }

std::vector<Example> examples_of(std::span<const Tensor> tensors) {
  std::vector<Example> out;
  for (size_t i = 0; i + 1 < tensors.size(); i += 2) out.push_back({tensors[i], tensors[i + 1]});
  return out;
}

/// Switches training off while it lives, then restores each module.
class Still final : Fields {
 public:
  explicit Still(LanguageModel& model) {
    module(model);
    model.fields(*this);
  }
  ~Still() override {
    for (const auto& [m, was] : before_) m->training = was;
  }
  Still(const Still&) = delete;

 private:
  void field(Field&) override {}
  void module(Module& m) override {
    before_.emplace_back(&m, m.training);
    m.training = false;
  }
  std::vector<std::pair<Module*, bool>> before_;
};

/// Copies a model's current states (counters of dropout) into a program that has its own.
std::vector<std::vector<std::byte>> kept_states(const Module& m, const Compiled* program = nullptr) {
  std::vector<std::vector<std::byte>> out;
  for (const Tensor& t : states(m))
    out.push_back(program && !program->shares(t) ? program->state(t.name()).to_bytes() : t.to_bytes());
  return out;
}
void put_back(const Module& m, const std::vector<std::vector<std::byte>>& kept) {
  const NoGrad off;
  const auto now = states(m);
  for (size_t i = 0; i < now.size(); ++i)
    assign(now[i], Tensor::from_bytes(kept[i], now[i].sizes(), now[i].dtype(), now[i].backend()));
}

// The sum of the losses of all tokens of a batch.
double total_loss(const LanguageModel& model, const Example& e) {
  return token_loss(model(e.input), e.target).item() * static_cast<double>(element_count(e.target.sizes()));
}

}  // namespace

Example example_of(const io::Batch& b) {
  const int64_t columns = b.rows ? static_cast<int64_t>(b.tokens.size()) / b.rows : 0;
  return {on_default(b.tokens, b.rows, columns), on_default(b.targets, b.rows, columns)};
}

double Evaluation::perplexity() const { return std::exp(loss); }

Evaluation evaluate(LanguageModel& model, std::span<const int32_t> ids, int64_t batch) {
  if (batch < 1) throw Error(invalid("evaluate: a batch has 1 row at least, got {}", batch));
  if (ids.size() < 2)
    throw Error(
        invalid("evaluate: wants 2 tokens at least, one to predict the other from, got {}; give more text",
                ids.size()));
  const Still still(model);
  const NoGrad off;
  const auto context = static_cast<size_t>(model.context());
  double sum = 0;
  for (size_t at = 0; at + 1 < ids.size();) {
    // As many full rows as fit, then the rest as one row.
    const size_t left = ids.size() - 1 - at;
    const size_t rows = std::clamp<size_t>(left / context, 1, static_cast<size_t>(batch));
    const size_t n = std::min(left, rows * context);
    const auto columns = static_cast<int64_t>(n / rows);
    sum += total_loss(model, {on_default(ids.subspan(at, n), static_cast<int64_t>(rows), columns),
                              on_default(ids.subspan(at + 1, n), static_cast<int64_t>(rows), columns)});
    at += n;
  }
  return {sum / static_cast<double>(ids.size() - 1), static_cast<int64_t>(ids.size()) - 1};
}

Trainer::Trainer(Checkpoint& run, const io::TokenData& data) : run_(run), data_(data) {
  if (data.context() != run.model->context())
    throw Error(invalid("the data has rows of {} tokens, the model a context of {}", data.context(),
                        run.model->context()));
  if (data.tokenizer().to_json() != run.info.tokenizer.to_json())
    throw Error(invalid("the data was made by another tokenizer than the model's ({} ids there, {} here)",
                        data.tokenizer().size(), run.info.tokenizer.size()));
  set_training(*run.model, true);
  if (run.info.settings.compile)
    compiled_ = std::make_unique<Compiled>(compile_step(
        run, run.info.settings.batch,
        {.name = "train_step", .backend = {}, .policy = current_policy(), .take_captured = true}));
}

int64_t Trainer::tokens_in_step() const {
  const auto& s = run_.info.settings;
  return s.batch * s.accumulate * data_.context();
}

// Tokens and targets of each batch of a step, alternating.
std::vector<Tensor> Trainer::batches(int64_t step) const {
  const auto& s = run_.info.settings;
  std::vector<Tensor> out;
  for (int64_t i = 0; i < s.accumulate; ++i) {
    const Example e = example_of(data_.train(static_cast<uint64_t>(step * s.accumulate + i), s.batch));
    out.insert(out.end(), {e.input, e.target});
  }
  return out;
}

Compiled compile_step(Checkpoint& run, const Dim& batch, const CompileOptions& options) {
  const auto& s = run.info.settings;
  std::vector<InputSpec> inputs;
  for (int64_t i = 0; i < s.accumulate; ++i)
    for (const char* what : {"tokens", "targets"})
      inputs.push_back({s.accumulate > 1 ? fmt::format("{}{}", what, i) : what,
                        {DType::i32, {batch, run.model->context()}}});
  inputs.push_back({"rate", {rate_type(s), {}}});
  const auto whole_step = [&](const std::vector<Tensor>& in) {
    const auto parts = examples_of(in);
    Tensor loss = accumulate_gradients(*run.model, parts);
    run.optimizer->step(in.back(), equal(loss - loss, Tensor::scalar(0, loss.dtype())));  // if it is finite
    return std::vector<Tensor>{loss.named("loss")};
  };
  return weft::compile(whole_step, inputs, options);
}

double Trainer::eager_step(const Tensor& rate) {
  run_.optimizer->clear_gradients();  // of a failed step
  const auto before = kept_states(*run_.model);
  const auto parts = examples_of(batches(run_.info.step));
  const double loss = accumulate_gradients(*run_.model, parts).item();
  if (!std::isfinite(loss)) {  // its gradients would make every parameter NaN
    run_.optimizer->clear_gradients();
    put_back(*run_.model, before);
    refuse(loss);
  }
  run_.optimizer->step(rate);
  return loss;
}

// Reading the loss waits for the step. The next step's batches are made and copied to the device before that,
// so that the device does not wait for them.
double Trainer::compiled_step(const Tensor& rate) {
  const auto before = kept_states(*run_.model, compiled_.get());
  const int64_t step = run_.info.step;
  auto inputs = next_step_ == step ? std::exchange(next_batches_, {}) : batches(step);
  inputs.push_back(rate);
  const Tensor result = (*compiled_)(inputs)[0];
  next_batches_ = batches(step + 1), next_step_ = step + 1;
  const double loss = result.item();
  if (std::isfinite(loss)) return loss;
  // The step has not changed the parameters; counters of dropout have advanced.
  sync();
  compiled_.reset();
  put_back(*run_.model, before);
  refuse(loss);
}

void Trainer::refuse(double loss) {
  const auto before = kept_states(*run_.model);
  const std::string where = where_lost();
  put_back(*run_.model, before);
  throw Error(invalid("the loss is {} at step {}: {}; a lower rate, or a clip, may keep it",
                      std::isnan(loss) ? "NaN" : "infinite", run_.info.step, where));
}

double Trainer::rate(double clock) const {
  const auto& s = run_.info.settings;
  const double done =
      s.steps > 0 ? static_cast<double>(run_.info.step) / static_cast<double>(s.steps) : clock;
  return s.schedule.at(run_.info.step, std::min(1.0, done));
}

double Trainer::step(double clock) {
  const Tensor rate = Tensor::scalar(this->rate(clock), rate_type(run_.info.settings));
  const double loss = compiled_ ? compiled_step(rate) : eager_step(rate);
  ++run_.info.step;
  return loss;
}

std::string Trainer::where_lost() const {
  for (const auto& part : examples_of(batches(run_.info.step))) {
    const auto bad = first_not_finite(
        [&](const std::vector<Tensor>& in) {
          return std::vector<Tensor>{token_loss((*run_.model)(in[0]), in[1])};
        },
        {part.input, part.target});
    if (!bad) continue;
    auto what = fmt::format("the first {} is in {}, {}, in {} elements", bad->nan ? "NaN" : "infinity",
                            bad->where, text(bad->type), bad->count);
    if (bad->given) what += fmt::format(": the update of step {} made it so", run_.info.step - 1);
    return what;
  }
  return "all tensors of the model are finite when its ops run one by one";
}

Evaluation Trainer::validate(int64_t rows) {
  sync();
  const Still still(*run_.model);
  const NoGrad off;
  // Few tokens at a time: a compiled step still holds its memory.
  const int64_t batch = std::clamp<int64_t>(512 / run_.model->context(), 1, 8);
  if (rows < 1) throw Error(invalid("validate: wants a row at least, got {}", rows));
  Evaluation out;
  double sum = 0;
  for (int64_t at = 0; at < rows; at += batch) {
    const auto b = data_.validation(static_cast<uint64_t>(at / batch), batch);
    sum += total_loss(*run_.model, example_of(b));
    out.tokens += static_cast<int64_t>(b.targets.size());
  }
  out.loss = sum / static_cast<double>(out.tokens);
  if (!std::isfinite(out.loss))
    throw Error(invalid(
        "the loss on validation rows is {} after step {}: the last update spoilt the parameters; try a "
        "lower rate or a clip",
        out.loss, run_.info.step));
  return out;
}

void Trainer::sync() {
  if (!compiled_) return;
  const auto names = compiled_->state_names();
  const NoGrad off;
  const auto bring_back = [&](const std::vector<Tensor>& all) {
    for (const Tensor& t : all)
      if (!compiled_->shares(t) && std::ranges::find(names, t.name()) != names.end())
        assign(t, compiled_->state(t.name()));
  };
  bring_back(parameters(*run_.model)), bring_back(states(*run_.model)), bring_back(run_.optimizer->states());
}

}  // namespace weft::nn
