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

/// Settings of a training run. A resumed run uses those of its checkpoint.
struct TrainSettings {
  LanguageModelConfig model = GPTConfig{};
  DType dtype = DType::f32;  ///< of parameters; bf16 and f16 have masters in f32
  OptimizerKind optimizer = OptimizerKind::adamw;
  double beta1 = 0.9, beta2 = 0.99, epsilon = 1e-8;  ///< of AdamW
  double momentum = 0.9;                             ///< of SGD
  double weight_decay = 0.1;
  double clip = 1;  ///< the largest norm of all gradients together; 0: any
  Schedule schedule{.warmup = 100};
  int64_t steps = 0;  ///< of the whole run; 0: limited by time
  int64_t batch = 12;
  int64_t accumulate = 1;  ///< batches to a step
  uint64_t seed = 1;       ///< of weights, batches and dropout
  bool compile = false;    ///< the step as one program
};

/// The metadata of a checkpoint.
struct RunInfo {
  TrainSettings settings;
  io::Tokenizer tokenizer = io::Tokenizer::bytes();
  int64_t step = 0;  ///< steps taken
};

/// A training run: new, or as it was saved.
struct Checkpoint {
  RunInfo info;
  std::unique_ptr<LanguageModel> model;
  std::unique_ptr<Optimizer> optimizer;
};

/// Makes the optimiser of the settings.
std::unique_ptr<Optimizer> make_optimizer(const TrainSettings& settings, std::vector<Tensor> parameters);
/// A new run: a model with its initial values, on the default backend.
///
/// Errors   invalid_argument for settings that make no model, or a vocabulary that is not the tokenizer's.
Checkpoint begin_run(const RunInfo& info);

std::string checkpoint_path(const std::string& folder);
bool has_checkpoint(const std::string& folder);

/// Creates the folder if it is missing, and replaces the checkpoint in it atomically.
///
/// Errors   io when the disk refuses; the checkpoint that was there stays.
void save_checkpoint(const std::string& folder, const Checkpoint& run);

/// Reads a checkpoint to the default backend.
///
/// Errors   unavailable when there is none; corrupt, with the field, when it is damaged or of another kind.
Checkpoint load_checkpoint(const std::string& folder);

/// A model for inference, and its tokenizer.
struct TrainedModel {
  RunInfo info;
  std::unique_ptr<LanguageModel> model;
};
/// The same without the training state. Errors: as load_checkpoint().
TrainedModel load_trained(const std::string& folder);

/// Locks a folder for one writer while it lives, so that two training runs can't overwrite each other.
/// Creates the folder if it is missing, and removes temporary files of a run that was killed while it saved.
/// The operating system releases the lock when the process ends, however it ends.
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
