#include "cli/training/options.h"

#include <unistd.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>

#include "cli/show.h"
#include "nn/settings.h"
#include "seam/registry.h"

namespace weft::cli {
namespace {

void add_model_options(Syntax& app, TrainOptions& o) {
  app.add_option("--model", o.model, "gpt (GPT-2's layout) or llama (rotary positions, gated MLP)")
      .one_of({"gpt", "llama"})
      .capture_default_str();
  const auto size = [&](const char* name, int64_t& to, int64_t least, int64_t most, const char* help) {
    app.add_option(name, to, help).range(least, most).capture_default_str();
  };
  size("--layers", o.layers, 1, 1000, "blocks");
  size("--heads", o.heads, 1, 1024, "attention heads of a block");
  size("--kv-heads", o.kv_heads, 0, 1024, "heads of keys and values (llama); 0: as many as heads");
  size("--width", o.width, 1, 65536, "numbers for a token");
  size("--hidden", o.hidden, 0, 1 << 20, "width of the MLPs; 0: the usual multiple of --width");
  size("--context", o.context, 1, 1 << 20, "tokens that the model sees");
  app.add_option("--dropout", o.dropout, "share of values dropped while training (gpt)")
      .range(0.0, 0.95)
      .capture_default_str();
  add_tokenizer_options(app, o.tokenizer);
}

void add_step_options(Syntax& app, TrainOptions& o) {
  auto& s = o.settings;
  app.add_option("--batch", s.batch, "rows of a batch").range(1, 65536).capture_default_str();
  app.add_option("--accumulate", s.accumulate, "batches to a step").range(1, 4096).capture_default_str();
  app.add_choice<nn::OptimizerKind>("--optimizer", s.optimizer,
                                    {{"adamw", nn::OptimizerKind::adamw}, {"sgd", nn::OptimizerKind::sgd}},
                                    "adamw (default) or sgd");
  const auto number = [&](const char* name, double& to, const char* help) {
    app.add_option(name, to, help).check(from_zero).capture_default_str();
  };
  app.add_option("--rate", s.schedule.rate, "highest learning rate").check(positive).capture_default_str();
  app.add_choice<nn::ScheduleKind>("--schedule", s.schedule.kind,
                                   {{"cosine", nn::ScheduleKind::cosine},
                                    {"linear", nn::ScheduleKind::linear},
                                    {"constant", nn::ScheduleKind::constant}},
                                   "how the rate falls: cosine (default), linear or constant");
  app.add_option("--warmup", s.schedule.warmup, "steps on which the rate rises")
      .range(0, 1 << 30)
      .capture_default_str();
  app.add_option("--least-rate", s.schedule.least, "part of the rate that is left at the end")
      .check(share)
      .capture_default_str();
  number("--weight-decay", s.weight_decay, "how much weights shrink, times the rate");
  number("--clip", s.clip, "largest norm of all gradients together; 0: any");
  number("--beta1", s.beta1, "of AdamW");
  number("--beta2", s.beta2, "of AdamW");
  app.add_option("--momentum", s.momentum, "of SGD").check(share).capture_default_str();
  app.add_choice<DType>("--dtype", s.dtype, {{"f32", DType::f32}, {"f64", DType::f64}, {"bf16", DType::bf16}},
                        "of weights: f32 (default), f64, or bf16 with masters in f32");
  app.add_flag("--compile", s.compile, "run the whole step as one compiled program");
  app.add_flag("--recompute", o.recompute, "less memory, more time: blocks run again on the way back");
  app.add_option("--seed", s.seed, "of weights, batches and dropout")
      .check(whole_number<uint64_t>(0))
      .capture_default_str();
}

int64_t usual_hidden(const TrainOptions& o) {
  if (o.hidden > 0) return o.hidden;
  return (8 * o.width / 3 + 31) / 32 * 32;  // has as many weights as an ungated MLP of 4 * width
}

}  // namespace

bool TrainOptions::given(const std::string& option) const { return app->given(option); }

nn::TrainSettings TrainOptions::asked(int64_t vocabulary_size) const {
  nn::TrainSettings s = settings;
  if (model == "llama" && dropout > 0)
    throw UsageError(invalid("--dropout is for --model gpt, llama has none"));
  if (model == "gpt" && kv_heads > 0)
    throw UsageError(invalid("--kv-heads is for --model llama, gpt has none"));
  const bool adamw = s.optimizer == nn::OptimizerKind::adamw;
  for (const char* name : {"--beta1", "--beta2"})
    if (!adamw && given(name)) throw UsageError(invalid("{} is for --optimizer adamw, sgd has none", name));
  if (adamw && given("--momentum"))
    throw UsageError(invalid("--momentum is for --optimizer sgd; adamw has --beta1"));
  if (model == "llama") {
    s.model = nn::LlamaConfig{.vocabulary = vocabulary_size,
                              .context = context,
                              .layers = layers,
                              .heads = heads,
                              .kv_heads = kv_heads ? kv_heads : heads,
                              .width = width,
                              .hidden = usual_hidden(*this),
                              .recompute = recompute};
  } else {
    s.model = nn::GPTConfig{.vocabulary = vocabulary_size,
                            .context = context,
                            .layers = layers,
                            .heads = heads,
                            .width = width,
                            .hidden = hidden,
                            .dropout = dropout,
                            .recompute = recompute};
  }
  return s;
}

void add_train_options(Syntax& app, TrainOptions& o) {
  o.app = &app;
  add_data_option(app, o.data).required();
  app.add_option("--out", o.out, "folder of the checkpoint").required().check(some_name).type_name("DIR");
  auto steps = app.add_option("--steps", o.settings.steps, "steps in all, those before --resume included")
                   .check(whole_number<int64_t>(1, int64_t{1} << 40));
  app.add_option("--seconds", o.seconds, "how long to train (default 60)").check(positive).excludes(steps);
  add_model_options(app, o);
  add_step_options(app, o);
  app.add_option("--save-every", o.save_every, "seconds between checkpoints")
      .check(positive)
      .capture_default_str();
  app.add_option("--sample-every", o.sample_every, "seconds between samples of generated text; 0: none")
      .check(from_zero)
      .capture_default_str();
  auto resume = app.add_flag("--resume", o.resume, "go on from the checkpoint in --out");
  app.add_flag("--fresh", o.fresh, "replace the checkpoint in --out").excludes(resume);
  app.footer("Ctrl-C stops after the step, writes the checkpoint and exits with 130.");
}

// Settings that may change when a run continues: those of the steps, not of the model.
constexpr std::string_view kMayChange[] = {"rate",       "schedule", "warmup",
                                           "least-rate", "clip",     "weight-decay"};

void take_changes(const TrainOptions& o, nn::TrainSettings& have) {
  for (const char* fixed : {"--tokenizer", "--vocabulary"})
    if (o.given(fixed))
      throw Error(invalid("{}: the tokenizer stays what it is; leave {} out with --resume",
                          nn::checkpoint_path(o.out), fixed));
  auto there = nn::settings_json(have);
  TrainOptions of_its_kind = o;
  if (!o.given("--model")) of_its_kind.model = there["model"].get<std::string>();
  const auto asked = nn::settings_json(of_its_kind.asked(0));
  for (const auto& [name, value] : asked.items()) {
    if (name == "steps" || name == "vocabulary" || !o.given("--" + name)) continue;
    const auto at = there.find(name);
    if (std::ranges::find(kMayChange, name) != std::end(kMayChange)) {
      *at = value;
      continue;
    }
    if (at == there.end() || *at != value)
      throw Error(
          invalid("{}: field '{}' is {}, --{} asks for {}; leave the option out, or train another model "
                  "without --resume",
                  nn::checkpoint_path(o.out), name, at == there.end() ? "not there" : at->dump(), name,
                  value.dump()));
  }
  raise_if(nn::read_settings(nn::checkpoint_path(o.out), there, have));
  if (o.given("--steps")) have.steps = o.settings.steps;
  if (o.given("--seconds")) have.steps = 0;
}

// Estimates memory before the host starts to swap or kills the process: parameters, gradients and optimizer
// states, and for each token the activations that the backward pass reads.
void check_memory(const nn::TrainSettings& s) {
  const auto weights = static_cast<double>(nn::parameter_count(*nn::make_model(s.model)));
  const double of_weight = s.optimizer == nn::OptimizerKind::adamw ? 4 : 3;
  const double of_token = std::visit(
      [](const auto& c) {
        const double kept =
            c.recompute ? 1 : 4;  // a block's input; without recompute, its inner activations too
        return static_cast<double>(c.layers) * kept * static_cast<double>(c.width) +
               static_cast<double>(c.vocabulary);
      },
      s.model);
  const auto context = static_cast<double>(std::visit([](const auto& c) { return c.context; }, s.model));
  const double bytes = s.dtype == DType::f64 ? 8 : s.dtype == DType::f32 ? 4 : 2;
  const double wanted = bytes * (of_weight * weights + of_token * context * static_cast<double>(s.batch));
  auto have =
      static_cast<double>(value_or_raise(seam::registry().open(default_backend()))->capability().memory);
  if (have == 0)
    have = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  if (wanted > have)
    throw Error(fail(Code::out_of_memory,
                     "training this model on {} wants at least {} bytes of memory, there are {}; a smaller "
                     "--width, --layers, --context or --batch wants less, and so does --recompute",
                     default_backend(), grouped(static_cast<int64_t>(wanted)),
                     grouped(static_cast<int64_t>(have))));
}

}  // namespace weft::cli
