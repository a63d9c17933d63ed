#pragma once
#include "eager/tensor_impl.h"
#include "ir/op.h"

namespace weft::eager {

/// What each tensor held before ops of this thread first updated it in place, while the log lives. Logs nest:
/// an update is in all of them.
class UpdateLog {
 public:
  struct Entry {
    Tensor target, before;
  };

  UpdateLog();
  ~UpdateLog();
  UpdateLog(const UpdateLog&) = delete;
  std::vector<Entry> entries;

  /// Before `op` runs.
  void note(const ir::OpDef& op, std::span<const Tensor* const> inputs);

 private:
  UpdateLog* outer_;
};

/// The innermost of this thread, or null.
inline constinit thread_local UpdateLog* innermost_log = nullptr;

}  // namespace weft::eager
