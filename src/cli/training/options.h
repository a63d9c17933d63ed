#pragma once
#include "cli/command.h"
#include "cli/text/reading.h"
#include "weft/trainer.h"

namespace weft::cli {

/// The options of `weft train`. Sizes of the model are separate until its kind is known.
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
  /// The settings with the model of these sizes.
  nn::TrainSettings asked(int64_t vocabulary_size) const;
};

void add_train_options(Syntax& app, TrainOptions& o);

/// Applies the options to the settings of a continued run: number and size of steps. Raises if another option
/// differs from the run's.
void take_changes(const TrainOptions& o, nn::TrainSettings& have);

/// Raises if training needs more memory, at least, than the backend or this machine has.
void check_memory(const nn::TrainSettings& settings);

}  // namespace weft::cli
