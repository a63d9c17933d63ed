#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "measure.h"
#include "peer.h"

// The libraries on this machine, opened at run time.
namespace weft::speed {

/// Elements with a shape, in the peers' form.
struct Operand {
  std::vector<int64_t> shape;
  std::vector<float> values;
  std::vector<int64_t> indices;  ///< in place of values

  PeerTensor c() const {
    const bool index = values.empty() && !indices.empty();
    return {index ? static_cast<const void*>(indices.data()) : values.data(), shape.data(),
            static_cast<int>(shape.size()), index};
  }
};
Operand random_operand(std::vector<int64_t> shape, uint64_t seed, double scale = 1);

/// A peer's task, ready to run; `run` is empty if the peer has no such op.
struct PeerTask {
  std::string library;
  Task task;
  std::function<double()> peak_bytes;  ///< of one more run; empty where it can't be said
};

/// The built modules and the BLAS libraries; prints those found, and why others were not.
void open_peers(const std::string& module_folder);
void set_peer_threads(int n);
/// One task for each library that has the op.
std::vector<PeerTask> peer_tasks(const std::string& op, const std::vector<Operand>& operands,
                                 const std::vector<double>& numbers = {});

/// A training step by torch.compile, in a Python process that takes one on request; the result is the losses
/// of the first steps. None, with a printed reason, if that Python has no PyTorch.
std::vector<PeerTask> compiled_peer(const std::vector<Operand>& operands, const std::vector<double>& numbers,
                                    int threads);

}  // namespace weft::speed
