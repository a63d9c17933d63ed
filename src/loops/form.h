#pragma once
#include <span>

#include "codegen/builder.h"
#include "loops/call.h"
#include "weft/status.h"

// A form: how one op, or the region, becomes loop kernels. `build` and `bind` of a form stand side by side in
// one file, since the scalars that one asks for are those that the other gives, in the same order.
namespace weft::loops {

using Scalars = SmallVector<int32_t, 32>;

/// One dispatch: the buffers and scalars of one kernel, and the number of work items.
struct Job {
  std::vector<const weft_tensor*> buffers;
  Scalars scalars;  ///< [0] is the number of items.

  void items(int64_t n) { scalars.push_back(static_cast<int32_t>(n)); }
  void push(int64_t n) { scalars.push_back(static_cast<int32_t>(n)); }
  void push(std::span<const int64_t> sizes) {
    for (int64_t s : sizes) push(s);
  }
  /// An argument of type `t` as LoopBuilder::argument reads it.
  void push_value(DType t, double value);
};

/// The tensors of one launch.
struct Operands {
  const weft_call& call;
  std::span<const weft_tensor* const> in, out;
};

/// Which inputs an output of the same type may be written over: every item reads only its own element of them
/// (or a later dispatch writes).
enum class Overwrite : uint8_t { any, first, never };

struct Stages;

struct Form {
  const char* op;
  const char* variant;
  std::span<const char* const> reads;
  uint32_t determinism;
  Overwrite overwrite;
  /// What common checks cannot know. The error says why not.
  Status (*check)(const weft_call&);
  /// Bit k: kernel k may be needed by a launch of this call.
  uint32_t (*needed)(const weft_call&);
  codegen::LoopKernel (*build)(const weft_call&, uint32_t kernel);
  /// Fills the job of kernel k; false: this launch does not run it.
  bool (*bind)(const Operands&, uint32_t kernel, Job&);
  bool absent = false;  ///< Operands may be absent.
  /// In place of the four functions: all that its launches do, for a call whose sizes are known, on a device
  /// with so many items in step (weft_capability::subgroup). The error says why not.
  Result<Stages> (*stages)(const weft_call&, uint32_t subgroup) = nullptr;
  uint32_t most_inputs = UINT32_MAX;  ///< that one kernel reads
};

std::span<const Form> elementwise_forms();  // and region
std::span<const Form> fused_forms();        // sum prod max min matmul region, by groups
std::span<const Form> fold_forms();         // sum prod max min matmul
std::span<const Form> conv_forms();         // conv conv_transpose conv_weight_grad
std::span<const Form> move_forms();         // reshape slice pad permute concat iota
std::span<const Form> index_forms();        // gather scatter scatter_add random_bits
std::span<const Form> order_forms();        // cumsum sort

inline uint32_t only_kernel(const weft_call&) { return 1; }
inline constexpr uint32_t kMaxRank = 8;
inline constexpr uint32_t kMostBodySteps = 1024;  // what reads a body calls itself once for each
/// Bytes of arguments that every OpenCL device takes (CL_DEVICE_MAX_PARAMETER_SIZE is at least this).
inline constexpr uint64_t kMaxParameterBytes = 1024;

}  // namespace weft::loops
