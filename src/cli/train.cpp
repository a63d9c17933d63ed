#include <chrono>
#include <csignal>
#include <numbers>

#include "cli/command.h"
#include "cli/program/backend.h"
#include "cli/training/display.h"
#include "cli/training/options.h"
#include "weft/generate.h"
#include "weft/policy_scope.h"

// weft train: text in, checkpoint out.
namespace weft::cli {
namespace {

volatile std::sig_atomic_t stop_signal = 0;

// The first signal asks the loop to stop after its step; a second one ends the program at once.
void on_signal(int signal) {
  stop_signal = signal;
  // Not SIGHUP, which comes twice when a terminal is closed.
  for (const int s : {SIGINT, SIGTERM}) std::signal(s, SIG_DFL);
}

// Tokens a second since the last call or pause. A mean over the whole run would always count its first steps,
// in which kernels are compiled.
class Pace {
 public:
  /// What came since then, such as saving, does not count.
  void skip(int64_t tokens) { at_ = Clock::now(), tokens_ = tokens; }
  double per_second(int64_t tokens) {
    const double seconds = seconds_since(at_);
    const auto taken = static_cast<double>(tokens - tokens_);
    skip(tokens);
    return taken / seconds;
  }

 private:
  Clock::time_point at_ = Clock::now();
  int64_t tokens_ = 0;
};

class Run {
 public:
  Run(const TrainOptions& o, const Common& common, nn::Checkpoint& state, const io::TokenData& data)
      : o_(o),
        state_(state),
        data_(data),
        trainer_(state, data),
        history_(o.out, state.info.step),
        show_(common.json),
        display_(common.json),
        first_step_(state.info.step) {}

  int go() {
    while (!stop_signal && done() < 1) {
      rate_ = trainer_.rate(done());
      const double loss = trainer_.step(done());
      // A moving average whose weights sum to one from the first step.
      average_ += (loss - average_) / static_cast<double>(std::min<int64_t>(taken(), 50));
      loss_ = loss;
      if (taken() <= 20 || seconds_since(logged_at_) >= 0.25) log();  // keeps the log of a long run short
      if (display_.due()) show();
      const bool samples = o_.sample_every > 0 && seconds_since(sampled_) > o_.sample_every,
                 saves = seconds_since(saved_) > o_.save_every;
      if (samples) try_sample();
      if (saves) validate(), save();
      if (samples || saves) logged_.skip(tokens()), shown_.skip(tokens());
    }
    if (taken() > 0 && logged_step_ != state_.info.step) log();
    // Evaluates the model before it replaces the saved one.
    const auto last = trainer_.validate();
    history_.add({.step = state_.info.step, .validation_loss = last.loss});
    if (taken() > 0 && shown_step_ != state_.info.step) show();
    if (taken() > 0) save();
    return finish(last);
  }

 private:
  int64_t taken() const { return state_.info.step - first_step_; }
  int64_t tokens() const { return taken() * trainer_.tokens_in_step(); }

  // The finished part of the run, from 0 to 1.
  double done() const {
    const auto steps = state_.info.settings.steps;
    if (steps > 0) return static_cast<double>(state_.info.step) / static_cast<double>(steps);
    return seconds_since(start_) / o_.seconds;
  }

  void log() {
    logged_at_ = Clock::now();
    logged_step_ = state_.info.step;
    history_.add({.step = logged_step_,
                  .loss = loss_,
                  .rate = rate_,
                  .tokens_per_second = logged_.per_second(tokens())});
    if (const auto trouble = history_.trouble(); !trouble.empty()) note(trouble);
  }

  void show() {
    shown_step_ = state_.info.step;
    const auto steps = state_.info.settings.steps;
    const double begun = steps > 0 ? static_cast<double>(first_step_) / static_cast<double>(steps) : 0;
    const double part = done();
    const double left = part > begun ? seconds_since(start_) * (1 - std::min(1.0, part)) / (part - begun) : 0;
    display_.progress({.step = state_.info.step,
                       .loss = average_,
                       .rate = rate_,
                       .per_second = shown_.per_second(tokens()),
                       .left = left},
                      history_.losses());
  }

  // A sample is for people: if it can't be made, the run continues without, and says so once.
  void try_sample() {
    sampled_ = Clock::now();
    if (!sample_trouble_.empty()) return;
    trainer_.sync();
    nn::set_training(*state_.model, false);
    try {
      sample();
    } catch (const Error& e) {
      sample_trouble_ = e.what();
      note(fmt::format("no text is shown on the way: {}", sample_trouble_));
    }
    nn::set_training(*state_.model, true);
  }

  // The model's continuation of a few tokens of the validation text.
  void sample() {
    const auto row = data_.validation(static_cast<uint64_t>(state_.info.step), 1).tokens;
    const std::vector<int32_t> prompt(row.begin(),
                                      row.begin() + std::min<std::ptrdiff_t>(8, std::ssize(row)));
    nn::Decoder decoder(*state_.model,
                        {.compile = {.name = "decoder", .backend = {}, .policy = current_policy()}});
    std::string text = state_.info.tokenizer.decode(prompt);
    nn::Generation g(decoder, state_.info.tokenizer, {&prompt, 1},
                     {.length = 60, .sampling = {.temperature = 0.8, .seed = state_.info.settings.seed}});
    while (g.step()) text += g.text(0);
    history_.add({.step = state_.info.step, .sample = text});
    display_.sample(state_.info.step, text);
  }

  void validate() {
    const auto v = trainer_.validate();
    history_.add({.step = state_.info.step, .validation_loss = v.loss});
    display_.validation(state_.info.step, v.loss, v.perplexity());
  }

  void save() {
    trainer_.sync();
    nn::save_checkpoint(o_.out, state_);
    saved_ = Clock::now();
  }

  int finish(const nn::Evaluation& v) {
    const std::string path = nn::checkpoint_path(o_.out);
    if (const Status page = history_.write_page(state_.info.settings); !page.ok()) note(page.message());
    if (const auto trouble = history_.trouble(); !trouble.empty()) note(trouble);
    if (stop_signal) {
      show_.result({{"stopped", true}, {"step", state_.info.step}, {"checkpoint", path}},
                   fmt::format("stopped after step {}; checkpoint in {}; go on with --resume",
                               state_.info.step, path));
      return 128 + stop_signal;
    }
    show_.result(
        {{"step", state_.info.step},
         {"steps_taken", taken()},
         {"validation_loss", v.loss},
         {"perplexity", v.perplexity()},
         {"checkpoint", path},
         {"page", history_.page_path()}},
        fmt::format("validation loss {:.4f}, perplexity {:.2f} ({:.2f} bits a token); checkpoint in {}, "
                    "curves in {}",
                    v.loss, v.perplexity(), v.loss / std::numbers::ln2, path, history_.page_path()));
    return 0;
  }

  const TrainOptions& o_;
  nn::Checkpoint& state_;
  const io::TokenData& data_;
  nn::Trainer trainer_;
  nn::History history_;
  Show show_;
  TrainingDisplay display_;
  int64_t first_step_;
  double average_ = 0;          // of the losses
  double loss_ = 0, rate_ = 0;  // of the last step
  int64_t logged_step_ = -1, shown_step_ = -1;
  std::string sample_trouble_;
  Pace logged_, shown_;
  Clock::time_point start_ = Clock::now(), saved_ = start_, sampled_ = start_, logged_at_ = start_;
};

void check_fresh(const TrainOptions& o) {
  if (nn::has_checkpoint(o.out) && !o.fresh)
    throw Error(
        invalid("{} is there already; go on with --resume, replace it with --fresh, or choose another --out",
                nn::checkpoint_path(o.out)));
}

nn::Checkpoint resumed(const TrainOptions& o) {
  auto run = nn::load_checkpoint(o.out);
  take_changes(o, run.info.settings);
  return run;
}

nn::Checkpoint fresh(const TrainOptions& o, const io::Tokenizer& tokenizer) {
  const auto settings = o.asked(tokenizer.size());
  check_memory(settings);
  return nn::begin_run({.settings = settings, .tokenizer = tokenizer});
}

void say_data(Show& show, const ReadText& text, const nn::Checkpoint& run, const io::TokenData& data) {
  for (const auto& words : text.notes) note(words);
  const auto tokens = static_cast<int64_t>(text.tokens.ids().size());
  const auto parameters = nn::parameter_count(*run.model);
  show.result({{"files", text.files.size()},
               {"tokens", tokens},
               {"vocabulary", run.info.tokenizer.size()},
               {"parameters", parameters},
               {"backend", default_backend()},
               {"step", run.info.step}},
              fmt::format("{} tokens of {}, {} kinds, {} to train on; {} parameters; on {}", grouped(tokens),
                          counted(text.files.size(), "file"), run.info.tokenizer.size(),
                          grouped(data.train_tokens()), grouped(parameters), default_backend()));
}

int train(const TrainOptions& o, const Common& common) {
  check_computes();
  const nn::FolderLock ours(o.out);
  if (!o.resume) check_fresh(o);
  Show show(common.json);
  std::optional<nn::Checkpoint> run;
  if (o.resume) run = resumed(o);
  const auto text = run ? read_text(o.data, run->info.tokenizer) : read_text(o.data, o.tokenizer);
  if (!run) run = fresh(o, text.tokens.tokenizer());
  const io::TokenData data(text.tokens, run->model->context(), run->info.settings.seed);
  say_data(show, text, *run, data);
  for (const int s : {SIGINT, SIGTERM, SIGHUP})
    if (std::signal(s, on_signal) == SIG_IGN) std::signal(s, SIG_IGN);  // by nohup, or a shell's `&`
  std::signal(SIGPIPE, SIG_IGN);  // if the reader exits, the run and its checkpoint go on
  const auto steps = run->info.settings.steps;
  if (steps > 0 && run->info.step >= steps)
    note(fmt::format(
        "the checkpoint is at step {} of {}, counted from the first: nothing is left to do; --steps "
        "or --seconds gives it more",
        run->info.step, steps));
  else  // checks that the folder is writable before time is spent, not after
    nn::save_checkpoint(o.out, *run);
  return Run(o, common, *run, data).go();
}

std::function<int()> setup(Syntax& app, const Common& common) {
  const auto o = std::make_shared<TrainOptions>();
  add_train_options(app, *o);
  return [o, &common] { return train(*o, common); };
}

}  // namespace

extern const Command train_command = {"train", "train a language model on text", setup};

}  // namespace weft::cli
