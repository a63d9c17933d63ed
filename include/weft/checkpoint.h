#pragma once
#include <memory>
#include <string>

#include "weft/models.h"
#include "weft/optim.h"
#include "weft/tokenizer.h"

// A training run on disk: <folder>/model.safetensors. One file, so that it is whole or absent: weights,
// moments and random states as tensors, and everything else as JSON in its metadata under "weft".
namespace weft::nn {

enum class OptimizerKind : uint8_t { adamw, sgd };

/// How a run trains. A run that is taken up again goes on with what its checkpoint says.
struct TrainSettings {
  LanguageModelConfig model = GPTConfig{};
  DType dtype = DType::f32;  ///< of parameters; bf16 and f16 have masters in f32
  OptimizerKind optimizer = OptimizerKind::adamw;
  double beta1 = 0.9, beta2 = 0.99, epsilon = 1e-8;  ///< of AdamW
  double momentum = 0.9;                             ///< of SGD
  double weight_decay = 0.1;
  double clip = 1;  ///< the largest norm of all gradients together; 0: any
  Schedule schedule{.warmup = 100};
  int64_t steps = 0;  ///< of the whole run; 0: it ends by the clock
  int64_t batch = 12;
  int64_t accumulate = 1;  ///< batches to a step
  uint64_t seed = 1;       ///< of weights, batches and dropout
  bool compile = false;    ///< the step as one program
};

/// What a checkpoint says besides its tensors.
struct RunInfo {
  TrainSettings settings;
  io::Tokenizer tokenizer = io::Tokenizer::bytes();
  int64_t step = 0;  ///< steps taken
};

/// A run: fresh, or as it was when it was saved.
struct Checkpoint {
  RunInfo info;
  std::unique_ptr<LanguageModel> model;
  std::unique_ptr<Optimizer> optimizer;
};

/// The optimiser that the settings ask for.
std::unique_ptr<Optimizer> make_optimizer(const TrainSettings& settings, std::vector<Tensor> parameters);
/// A run that has not begun: a model with its first values, on the default backend.
///
/// Errors   invalid_argument for settings that make no model, or a vocabulary that is not the tokenizer's.
Checkpoint begin_run(const RunInfo& info);

std::string checkpoint_path(const std::string& folder);
bool has_checkpoint(const std::string& folder);

/// Makes the folder if it is missing, and replaces the checkpoint in it in one move.
///
/// Errors   io when the disk refuses; the checkpoint that was there stays.
void save_checkpoint(const std::string& folder, const Checkpoint& run);

/// Reads a checkpoint to the default backend.
///
/// Errors   unavailable when there is none; corrupt, with the field, when it is damaged or of another kind.
Checkpoint load_checkpoint(const std::string& folder);

/// A model to read with, and what turns text into its tokens.
struct TrainedModel {
  RunInfo info;
  std::unique_ptr<LanguageModel> model;
};
/// The same without what only training wants. Errors: as load_checkpoint().
TrainedModel load_trained(const std::string& folder);

/// Keeps a folder for one writer while it lives: a second training run in it would win or lose silently.
/// Makes the folder if it is missing, and removes what a run that was killed while it saved has left beside
/// the checkpoint. The kernel lets go of it when the process ends, however it ends.
///
/// Errors   io when another process holds the folder, or the disk refuses.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_;
};

}  // namespace weft::nn
