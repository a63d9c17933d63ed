#include <algorithm>
#include <cmath>

#include "cli/command.h"
#include "cli/show.h"
#include "cli/text/reading.h"
#include "conformance/noise.h"
#include "weft/ops.h"
#include "weft/random.h"
#include "weft/text.h"
#include "weft/trace.h"
#include "weft/trainer.h"

// weft compare: the same weights and the same tokens on every backend, judged against `reference`.
namespace weft::cli {
namespace {

struct Options {
  std::string model;
  std::vector<std::string> data;
  int64_t batch = 1;
};

/// Logits [batch, context, vocabulary] and loss of one run.
struct Outputs {
  std::vector<double> logits;
  double loss = 0;
};

struct Row {
  std::string backend;
  std::string failure;          // why it did not run, or how it disagrees; empty: agrees
  double error = 0, bound = 0;  // of the element, of logits or loss, that comes closest to its bound
  const char* output = "";
  double per_second = 0;
  std::vector<LedgerRow> kernels;
};

Outputs forward(const nn::LanguageModel& model, const Tensor& tokens, const Tensor& targets) {
  const NoGrad off;
  const Tensor logits = model(tokens);
  return {logits.to_vector<double>(), nn::token_loss(logits, targets).item()};
}

struct Case {
  const nn::TrainedModel& trained;
  io::Batch batch;

  Tensor tokens() const { return nn::example_of(batch).input; }
  Tensor targets() const { return nn::example_of(batch).target; }
  /// The model in f32 on the default backend.
  std::unique_ptr<nn::LanguageModel> model() const {
    auto m = nn::make_model(trained.info.settings.model);
    nn::copy_fields(*trained.model, *m, DType::f32);
    return m;
  }
};

/// Logits and loss by the noise bound of graphs: the truth in f64, and the bound of each element.
struct Bounds {
  conformance::Bounded logits, loss;
};

// The model's own graph, run with its intermediates randomly rounded: the effect of rounding on these weights
// and tokens, not the worst case.
Bounds noise_bounds(const Case& c) {
  const Tensor tokens = c.tokens(), targets = c.targets();
  const auto model = c.model();
  const Traced traced = trace(
      [&](const std::vector<Tensor>& in) {
        const Tensor logits = (*model)(in[0]);
        return std::vector<Tensor>{logits, nn::token_loss(logits, in[1])};
      },
      {{"tokens", tokens.type()}, {"targets", targets.type()}});
  std::vector<conformance::Array> inputs = {conformance::from_tensor(tokens),
                                            conformance::from_tensor(targets)};
  for (const auto& w : traced.weights) inputs.push_back(conformance::from_tensor(w));
  auto bounds = value_or_raise(conformance::noise_bound(*traced.graph, inputs));
  return {std::move(bounds[0]), std::move(bounds[1])};
}

Outputs run_once(const Case& c) { return forward(*c.model(), c.tokens(), c.targets()); }

// Keeps the element closest to its bound. A NaN counts as infinitely far: comparisons with it are false.
void judge_element(Row& row, const char* output, double got, double want, long double bound) {
  const double off = std::abs(got - want), error = std::isnan(off) ? INFINITY : off;
  const auto allowed =
      static_cast<double>(2 * bound);  // each of the two may differ from the truth by the bound
  if (!row.bound || error * row.bound > row.error * allowed || std::isinf(error))
    row.error = error, row.bound = allowed, row.output = output;
  if (!(error <= allowed)) row.failure = fmt::format("disagrees in the {}", output);
}

void judge_outputs(Row& row, const Outputs& got, const Outputs& reference, const Bounds& bounds) {
  if (got.logits.size() != reference.logits.size()) {
    row.failure = fmt::format("gave {} logits, wanted {}", got.logits.size(), reference.logits.size());
    return;
  }
  for (size_t i = 0; i < got.logits.size(); ++i)
    judge_element(row, "logits", got.logits[i], reference.logits[i], bounds.logits.error[i]);
  judge_element(row, "loss", got.loss, reference.loss, bounds.loss.error[0]);
}

// Half a second of forward passes, after a warm-up.
double speed(const nn::LanguageModel& model, const Tensor& tokens, const Tensor& targets, int64_t count) {
  const auto start = Clock::now();
  double spent = 0;
  for (int64_t n = 1;; ++n) {
    forward(model, tokens, targets);
    spent = seconds_since(start);
    if (spent > 0.5) return static_cast<double>(n * count) / spent;
  }
}

Row judge(const std::string& backend, const Case& c, const Outputs& reference, const Bounds& bounds) {
  Row row{.backend = backend};
  try {
    const OnBackend here(backend);
    const auto model = c.model();
    const Tensor tokens = c.tokens(), targets = c.targets();
    reset_ledger();
    const Outputs got = forward(*model, tokens, targets);
    row.kernels = ledger_rows();
    judge_outputs(row, got, reference, bounds);
    row.per_second = speed(*model, tokens, targets, c.batch.rows * model->context());
  } catch (const Error& e) {
    row.failure = e.what();
  }
  return row;
}

std::vector<std::string> backends_to_run(const Common& common) {
  if (!common.backend.empty()) return {common.backend};
  std::vector<std::string> names;
  for (const auto& b : get_backends())
    for (const auto& d : b.devices)
      if (d.computes) names.push_back(d.name);
  return names;
}

Json to_json(const Row& r) {
  return {{"backend", r.backend},
          {"agrees", r.failure.empty()},
          {"reason", r.failure},
          {"error", r.error},
          {"bound", r.bound},
          {"output", r.output},
          {"tokens_per_second", r.per_second},
          {"kernels", ledger_json(r.kernels)}};
}

// Names of kernels without the device prefix, each once, with its number of runs.
std::string kernel_list(const Row& r) {
  std::vector<std::pair<std::string, uint64_t>> all;
  for (const auto& k : r.kernels) {
    const auto at = std::find_if(all.begin(), all.end(), [&](const auto& a) { return a.first == k.kernel; });
    if (at == all.end()) {
      all.emplace_back(k.kernel, k.calls);
    } else {
      at->second += k.calls;
    }
  }
  std::string s;
  for (const auto& [name, calls] : all)
    s += fmt::format("{}{}{}", s.empty() ? "" : ", ", name, calls > 1 ? fmt::format(" x{}", calls) : "");
  return s;
}

void print(const std::vector<Row>& rows) {
  fmt::print("{:<12} {:>13} {:>9} {:>12} {:>13}  {:<14}  {}\n", "backend", "largest error", "bound",
             "error/bound", "tokens/s", "kernels used", "verdict");
  for (const auto& r : rows) {
    uint64_t launches = 0;
    for (const auto& k : r.kernels) launches += k.calls;
    if (r.kernels.empty()) {
      fmt::print("{:<12} {:>13} {:>9} {:>12} {:>13}  {:<14}  {}\n", r.backend, "-", "-", "-", "-", "-",
                 "failed: " + r.failure);
      continue;
    }
    fmt::print("{:<12} {:>13.2e} {:>9.2e} {:>12.4f} {:>13}  {:<14}  {}\n", r.backend, r.error, r.bound,
               r.error / r.bound, grouped(static_cast<int64_t>(r.per_second)),
               fmt::format("{} in {} calls", r.kernels.size(), launches),
               r.failure.empty() ? "agrees" : r.failure);
  }
  fmt::print("\nkernels used in one forward pass:\n");
  for (const auto& r : rows) fmt::print("  {}: {}\n", r.backend, kernel_list(r));
}

io::Batch batch_for(const Options& o, const nn::TrainedModel& trained) {
  const auto& [settings, tokenizer, step] = trained.info;
  const int64_t context = trained.model->context();
  const auto first_of = [&](io::Tokens tokens) {
    if (const auto n = std::ssize(tokens.ids()); n < 2 * (context + 1))
      throw Error(
          invalid("the text has {} tokens: too few for a context of {}, which wants {} at least to compare "
                  "on; give more text, or none: then tokens are drawn",
                  n, context, 2 * (context + 1)));
    return io::TokenData(std::move(tokens), context, settings.seed).validation(0, o.batch);
  };
  if (!o.data.empty()) {
    auto text = read_text(o.data, tokenizer);
    for (const auto& words : text.notes) note(words);
    return first_of(std::move(text.tokens));
  }
  // Without a text, random tokens: harder on the numbers than text that the model knows.
  std::vector<int32_t> ids(static_cast<size_t>(4 * o.batch * (context + 1)));
  for (size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<int32_t>(random_word(settings.seed, i) % static_cast<uint64_t>(tokenizer.size()));
  return first_of({std::move(ids), tokenizer});
}

int run(const Options& o, const Common& common) {
  const OnBackend home("reference");
  const auto trained = nn::load_trained(o.model);
  const Case c{trained, batch_for(o, trained)};
  const Outputs reference = run_once(c);
  const Bounds bounds = noise_bounds(c);
  std::vector<Row> rows;
  for (const auto& name : backends_to_run(common)) rows.push_back(judge(name, c, reference, bounds));
  if (common.json) {
    for (const auto& r : rows) fmt::print("{}\n", line_of(to_json(r)));
  } else {
    print(rows);
  }
  return std::all_of(rows.begin(), rows.end(), [](const Row& r) { return r.failure.empty(); }) ? 0 : 1;
}

std::function<int()> setup(Syntax& app, const Common& common) {
  const auto o = std::make_shared<Options>();
  app.add_option("--model", o->model, "folder of the checkpoint").required().type_name("DIR");
  add_data_option(app, o->data);
  app.add_option("--batch", o->batch, "rows to run on").range(1, 65536).capture_default_str();
  app.footer(
      "Without --data, the model reads random tokens. Runs on every available backend, or on --backend "
      "alone. Exits with 1 if one disagrees or fails.");
  return [o, &common] { return run(*o, common); };
}

}  // namespace

extern const Command compare_command = {"compare",
                                        "run one model on every backend and compare with `reference`", setup};

}  // namespace weft::cli
