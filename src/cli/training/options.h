#pragma once
#include "cli/command.h"
#include "cli/text/reading.h"
#include "weft/trainer.h"

namespace weft::cli {

/// What `weft train` was asked for. Sizes of the model are kept apart until its kind is known.
struct TrainOptions {
  std::vector<std::string> data;
  std::string out;
  TokenizerOptions tokenizer = {.tokenizer = "characters", .vocabulary = 2048};
  std::string model = "gpt";
  int64_t layers = 4, heads = 4, kv_heads = 0, width = 128, hidden = 0, context = 64;
  double dropout = 0;
  bool recompute = false;
  nn::TrainSettings settings;
  double seconds = 60, save_every = 30, sample_every = 20;
  bool resume = false, fresh = false;
  const Syntax* app = nullptr;

  bool given(const std::string& option) const;
  /// The settings with the model that the sizes make.
  nn::TrainSettings asked(int64_t vocabulary_size) const;
};

void add_train_options(Syntax& app, TrainOptions& o);

/// Puts what the options say into the settings of a run that goes on: how many and how large its steps are.
/// Raises where one asks for anything else than it is.
void take_changes(const TrainOptions& o, nn::TrainSettings& have);

/// Raises where what training takes at the least is more than the backend, or this machine, has.
void check_memory(const nn::TrainSettings& settings);

}  // namespace weft::cli
