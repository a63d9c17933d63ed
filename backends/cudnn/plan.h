#pragma once
#include <cuda_runtime_api.h>

#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "graph.h"

namespace weft::cudnn {

/// Whom plans are made for: a handle of the device, or a device that is only described (for tests).
struct Target {
  cudnnHandle_t handle = nullptr;
  const Descriptor* properties = nullptr;
};

/// A graph, and the engine of cuDNN that computes it.
class Plan {
 public:
  /// The first engine of cuDNN's choice that keeps to the graph's rules. Throws Failure if there is none.
  Plan(Graph graph, const Target&);

  /// Bytes that `run` wants, at any address.
  uint64_t workspace() const { return bytes_ ? bytes_ + kAlignment : 0; }
  bool uses_tensor_cores() const { return tensor_cores_; }
  /// On the handle's stream, which is `stream`. Throws Failure.
  void run(cudnnHandle_t, cudaStream_t stream, const backend::Launch&) const;

 private:
  static constexpr uint64_t kAlignment = 256;
  void choose(const Target&);
  bool take(const Descriptor& config, const Target&, std::string& why);

  Graph graph_;
  std::optional<Descriptor> operations_, plan_;
  uint64_t of_engine_ = 0, bytes_ = 0;
  bool tensor_cores_ = false;
};

}  // namespace weft::cudnn
