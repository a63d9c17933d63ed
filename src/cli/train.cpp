#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <numbers>

#include "cli/command.h"
#include "cli/show.h"
#include "seam/registry.h"
#include "weft/checkpoint.h"
#include "weft/ops.h"

// weft train: text in, checkpoint out.
namespace weft::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::vector<std::string> data;
  std::string out;
  int64_t steps = 0;
  double seconds = 60;
  int64_t batch = 256;
  nn::CharModelConfig model;
  double rate = 1e-2;
  uint64_t seed = 1;
  bool resume = false, fresh = false;
  const CLI::App* app = nullptr;
  bool given(const char* option) const { return app->count(option) > 0; }
};

volatile std::sig_atomic_t stop_signal = 0;

// The first signal asks the loop to stop after its step; a second one ends the program at once.
void on_signal(int signal) {
  stop_signal = signal;
  std::signal(signal, SIG_DFL);
}

double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

Tensor on_default(const std::vector<int32_t>& values, std::initializer_list<int64_t> shape) {
  return Tensor::of(std::span<const int32_t>(values), std::span<const int64_t>(shape.begin(), shape.size()),
                    DType::i32);
}

// A checkpoint goes on only as what it is: an option that says otherwise is an error, not a wish.
void check_same(const Options& o, const nn::RunInfo& info) {
  const auto differs = [&](const char* option, const char* field, auto asked, auto have) {
    if (o.given(option) && asked != have)
      throw Error(
          invalid("{}: field '{}' is {}, {} asks for {}; leave the option out, or train another model "
                  "without --resume",
                  nn::checkpoint_path(o.out), field, have, option, asked));
  };
  differs("--hidden", "hidden", o.model.hidden, info.config.hidden);
  differs("--embed", "embed", o.model.embed, info.config.embed);
  differs("--context", "context", o.model.context, info.config.context);
  differs("--dropout", "dropout", o.model.dropout, info.config.dropout);
  differs("--seed", "seed", o.seed, info.seed);
}

// What training takes at the very least, all f32: of each weight itself, its gradient and two moments, and of
// each row of a batch what the layers were given, which the way back reads.
uint64_t least_memory(const nn::CharModelConfig& c, int64_t batch) {
  const int64_t seen = c.context * c.embed;
  const int64_t weights = c.vocabulary * c.embed + (seen + 1) * c.hidden + (c.hidden + 1) * c.hidden +
                          (c.hidden + 1) * c.vocabulary;
  return 4 * static_cast<uint64_t>(4 * weights + batch * (seen + 2 * c.hidden));
}

// Before the host is driven into its swap, or a process of it is killed.
void check_memory(const Options& o, const nn::CharModelConfig& config) {
  const uint64_t wanted = least_memory(config, o.batch);
  uint64_t have = value_or_raise(seam::registry().open(default_backend()))->capability().memory;
  if (have == 0)
    have = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  if (wanted > have)
    throw Error(
        fail(Code::out_of_memory, "training this model on {} wants at least {} bytes of memory, there are {}",
             default_backend(), grouped(static_cast<int64_t>(wanted)), grouped(static_cast<int64_t>(have))));
}

nn::Checkpoint begin(const Options& o, const io::Text& text) {
  const bool there = nn::has_checkpoint(o.out);
  if (o.resume) {
    auto run = nn::load_checkpoint(o.out);
    check_same(o, run.info);
    check_memory(o, run.info.config);
    return run;
  }
  if (there && !o.fresh)
    throw Error(
        invalid("{} is there already; go on with --resume, replace it with --fresh, or choose another --out",
                nn::checkpoint_path(o.out)));
  nn::RunInfo info{
      .config = o.model, .vocabulary = io::Vocabulary::from_text(text.characters), .seed = o.seed};
  info.config.vocabulary = info.vocabulary.size();
  check_memory(o, info.config);
  nn::CharModel model(info.config);
  nn::build(model, {.seed = o.seed});
  nn::AdamW optimizer(nn::parameters(model));
  return {std::move(info), std::move(model), std::move(optimizer)};
}

double validation_loss(const nn::CharModel& model, const io::TextData& data) {
  const NoGrad off;
  constexpr int64_t kRows = 256, kBatches = 16;
  double sum = 0;
  for (int64_t i = 0; i < kBatches; ++i) {
    const auto b = data.validation(static_cast<uint64_t>(i), kRows);
    sum += cross_entropy(model(on_default(b.tokens, {kRows, model.config().context})),
                         on_default(b.targets, {kRows}))
               .item();
  }
  return sum / kBatches;
}

class Run {
 public:
  Run(const Options& o, const Common& common, nn::Checkpoint& state, const io::TextData& data)
      : o_(o), state_(state), data_(data), show_(common.json), first_step_(state.info.step) {}

  int go() {
    nn::set_training(state_.model, true);
    double average = 0;
    while (!stop_signal && done() < 1) {
      const double loss = step();
      if (!std::isfinite(loss))
        throw Error(invalid("the loss is {} at step {}; the last checkpoint stays; try a --rate below {}",
                            loss, state_.info.step, o_.rate));
      const int64_t n = state_.info.step - first_step_;
      // A moving average whose weights sum to one from the first step on.
      average += (loss - average) / static_cast<double>(std::min<int64_t>(n, 100));
      show(average, n, false);
      if (seconds_since(saved_) > kSaveEvery) save();
    }
    const int64_t n = state_.info.step - first_step_;
    if (n > 0) show(average, n, true), save();
    return finish(n);
  }

 private:
  static constexpr double kSaveEvery = 30;

  // How much of the run is over, from 0 to 1.
  double done() const {
    if (o_.steps > 0) return static_cast<double>(state_.info.step) / static_cast<double>(o_.steps);
    return seconds_since(start_) / o_.seconds;
  }

  // Down a half cosine to a twentieth, after a short way up (Loshchilov and Hutter, SGDR, ICLR 2017).
  double rate() const {
    const double warm = std::min(1.0, static_cast<double>(state_.info.step + 1) / 50);
    const double wave = 0.5 * (1 + std::cos(std::numbers::pi * std::min(1.0, done())));
    return o_.rate * warm * (0.05 + 0.95 * wave);
  }

  double step() {
    const auto b = data_.train(static_cast<uint64_t>(state_.info.step), o_.batch);
    const Tensor loss = nn::train_step(state_.model, state_.optimizer,
                                       on_default(b.tokens, {o_.batch, state_.info.config.context}),
                                       on_default(b.targets, {o_.batch}), Tensor::scalar(rate()));
    ++state_.info.step;
    return loss.item();
  }

  void show(double loss, int64_t taken, bool last) {
    const double spent = seconds_since(start_), part = done();
    const double begun = o_.steps > 0 ? static_cast<double>(first_step_) / static_cast<double>(o_.steps) : 0;
    const double left = part > begun ? spent * (1 - std::min(1.0, part)) / (part - begun) : 0;
    show_.progress({.step = state_.info.step,
                    .loss = loss,
                    .per_second = static_cast<double>(taken * o_.batch) / spent,
                    .left = last ? 0 : left},
                   last);
  }

  void save() {
    nn::save_checkpoint(o_.out, state_.info, state_.model, state_.optimizer);
    saved_ = Clock::now();
  }

  int finish(int64_t taken) {
    nn::set_training(state_.model, false);
    const std::string path = nn::checkpoint_path(o_.out);
    if (stop_signal) {
      show_.result({{"stopped", true}, {"step", state_.info.step}, {"checkpoint", path}},
                   fmt::format("stopped after step {}; checkpoint in {}; go on with --resume",
                               state_.info.step, path));
      return 128 + stop_signal;
    }
    const double loss = validation_loss(state_.model, data_);
    show_.result(
        {{"step", state_.info.step}, {"steps_taken", taken}, {"validation_loss", loss}, {"checkpoint", path}},
        fmt::format("validation loss {:.4f} ({:.2f} bits a character); checkpoint in {}", loss,
                    loss / std::numbers::ln2, path));
    return 0;
  }

  const Options& o_;
  nn::Checkpoint& state_;
  const io::TextData& data_;
  Show show_;
  int64_t first_step_;
  Clock::time_point start_ = Clock::now(), saved_ = start_;
};

void check_computes(const std::string& backend) {
  const auto* device = value_or_raise(seam::registry().open(backend));
  if (std::string_view(device->capability().kind) == "null")
    throw Error(invalid(
        "backend {} computes nothing, so that nothing would be learnt; choose another --backend", backend));
}

int train(const Options& o, const Common& common) {
  check_computes(default_backend());
  const auto text = io::load_text(o.data);
  const nn::FolderLock ours(o.out);
  auto state = begin(o, text);
  const auto ids = state.info.vocabulary.encode(text.characters);
  const io::TextData data(ids, state.info.config.context, state.info.seed);
  const auto unknown = std::count(ids.begin(), ids.end(), 0);
  Show show(common.json);
  for (const auto& note : text.notes) show.note(note);
  show.result(
      {{"files", text.files.size()},
       {"characters", ids.size()},
       {"vocabulary", state.info.vocabulary.size()},
       {"unknown", unknown},
       {"backend", default_backend()},
       {"step", state.info.step}},
      fmt::format("{} characters of {} files, {} kinds, {} rare ones as U+FFFD; {} for training; on {}",
                  grouped(static_cast<int64_t>(ids.size())), text.files.size(),
                  state.info.vocabulary.size() - 1, unknown, grouped(data.train_size()), default_backend()));
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away ends the progress, not the run and its checkpoint
  // Whether the folder takes a checkpoint is known before a minute is spent, not after.
  nn::save_checkpoint(o.out, state.info, state.model, state.optimizer);
  if (o.steps > 0 && state.info.step >= o.steps)
    show.note(
        fmt::format("the checkpoint is at step {}, --steps {} counts from the first: nothing is left to do",
                    state.info.step, o.steps));
  return Run(o, common, state, data).go();
}

int run(const Options& o, const Common& common) {
  try {
    return train(o, common);
  } catch (const Error& e) {
    if (e.status().code() != Code::out_of_memory) throw;
    throw Error(fail(Code::out_of_memory, "{}; a smaller --hidden, --embed, --context or --batch wants less",
                     e.status().message()));
  }
}

// CLI::PositiveNumber lets "nan" through.
std::string positive(const std::string& text) {
  const double v = std::atof(text.c_str());
  return v > 0 && std::isfinite(v) ? "" : "must be a number above 0, got " + text;
}

std::function<int()> setup(CLI::App& app, const Common& common) {
  const auto o = std::make_shared<Options>();
  o->app = &app;
  app.add_option("--data", o->data, "text files, or folders of them")->required()->type_name("PATH");
  app.add_option("--out", o->out, "folder of the checkpoint")->required()->type_name("DIR");
  auto* steps = app.add_option("--steps", o->steps, "steps in all, those before --resume included")
                    ->check(whole_number<int64_t>(1));
  app.add_option("--seconds", o->seconds, "how long to train (default 60)")->check(positive)->excludes(steps);
  app.add_option("--batch", o->batch, "rows a step")->check(CLI::Range(1, 65536))->capture_default_str();
  app.add_option("--context", o->model.context, "characters that the model sees")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--hidden", o->model.hidden, "width of the two hidden layers")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  app.add_option("--embed", o->model.embed, "width of a character")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--rate", o->rate, "highest learning rate")->check(positive)->capture_default_str();
  app.add_option("--dropout", o->model.dropout, "share of hidden values dropped")
      ->check(CLI::Range(0.0, 0.95))
      ->capture_default_str();
  app.add_option("--seed", o->seed, "of weights, batches and dropout")
      ->check(whole_number<uint64_t>(0))
      ->capture_default_str();
  auto* resume = app.add_flag("--resume", o->resume, "go on from the checkpoint in --out");
  app.add_flag("--fresh", o->fresh, "replace the checkpoint in --out")->excludes(resume);
  app.footer("Ctrl-C stops after the step, writes the checkpoint and exits with 130.");
  return [o, &common] { return run(*o, common); };
}

}  // namespace

extern const Command train_command = {"train", "train a character language model on text", setup};

}  // namespace weft::cli
