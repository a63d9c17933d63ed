#pragma once
#include <cuda_runtime_api.h>

#include <span>
#include <string>

#include "weft/backend.hpp"

// Kernels that were compiled ahead of time, by Triton or by TileLang (backends/tilelang): one plug-in has
// those of one of them.
namespace weft::cubins {

/// One of them, for one architecture. compile.py makes the table of all.
struct Cubin {
  const char *name, *symbol;
  const unsigned char* bytes;
  int architecture, threads, shared;
  int rows, columns;  ///< of a block's tile of the result; 0: the kernel has none
  /// A letter for each parameter: which argument it takes, the first one being a; the same in capitals: an
  /// eighth of an i32; '-': a null pointer.
  const char* parameters;
};
std::span<const Cubin> cubins();
const char* made_by();

/// A cubin of the current device, loaded on first use; null and a reason if there is none that fits.
class Kernel {
 public:
  static const Kernel* find(const std::string& name, std::string& why);
  const Cubin& cubin() const { return *cubin_; }
  /// Arguments in the order of the record, each as wide as its type; a kernel takes those that it names.
  template <class... A>
  backend::Outcome start(const backend::Launch& l, dim3 blocks, A... arguments) const {
    void* all[] = {&arguments...};
    return enqueue(l, blocks, all);
  }

 private:
  backend::Outcome enqueue(const backend::Launch&, dim3 blocks, std::span<void* const> arguments) const;
  backend::Outcome load();

  const Cubin* cubin_ = nullptr;
  cudaKernel_t loaded_ = nullptr;
  std::string why_;
};

/// What every kernel here wants: known sizes, of fewer than 2^31 elements, and none of them 0.
backend::Support takes_sizes(const backend::OpCall&);
/// "fp32", "fp16", "bf16", or null.
const char* name_of(DType);
/// Whether a cubin is there, both for aligned operands and for others.
backend::Support there(const std::string& name);
/// The one for operands of this launch: `multiples` says whether its sizes are multiples of 16.
const Kernel* kernel_for(const backend::Launch&, const std::string& name, bool multiples, std::string& why);
int64_t elements(std::span<const int64_t> sizes);

}  // namespace weft::cubins
