#pragma once
#include <string>

#include "weft/nn.h"
#include "weft/text.h"

// A training run on disk: <folder>/model.safetensors. One file, so that it is whole or absent: weights,
// moments and random states as tensors, and everything else as JSON in its metadata under "weft".
namespace weft::nn {

/// What a checkpoint says besides its tensors.
struct RunInfo {
  CharModelConfig config;
  io::Vocabulary vocabulary{U"\uFFFD"};
  int64_t step = 0;   ///< steps taken
  uint64_t seed = 0;  ///< of the batches
};

std::string checkpoint_path(const std::string& folder);
bool has_checkpoint(const std::string& folder);

/// Makes the folder if it is missing, and replaces the checkpoint in it in one move.
///
/// Errors   io when the disk refuses; the checkpoint that was there stays.
void save_checkpoint(const std::string& folder, const RunInfo& info, const CharModel& model,
                     const AdamW& optimizer);

/// Keeps a folder for one writer while it lives: a second training run in it would win or lose silently.
/// Makes the folder if it is missing. The kernel lets go of it when the process ends, however it ends.
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

/// A checkpoint that was read and found whole.
struct Checkpoint {
  RunInfo info;
  CharModel model;
  AdamW optimizer;
};

/// Reads a checkpoint to the default backend.
///
/// Errors   unavailable when there is none; corrupt, with the field, when it is damaged or of another kind of
/// model.
Checkpoint load_checkpoint(const std::string& folder);

}  // namespace weft::nn
