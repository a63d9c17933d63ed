#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "measure.h"
#include "peer.h"

// The libraries that are there on this machine, opened at run time.
namespace weft::speed {

/// Elements with a shape, as peers see them.
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

/// A peer's task, ready to run; its `run` is empty where the peer has no such op.
struct PeerTask {
  std::string library;
  Task task;
  std::function<double()> peak_bytes;  ///< of one more run; empty where it can't be said
};

/// The built modules and the libraries of matrix products; prints what was found, and why something was not.
void open_peers(const std::string& module_folder);
void set_peer_threads(int n);
/// One task for each library that has the op.
std::vector<PeerTask> peer_tasks(const std::string& op, const std::vector<Operand>& operands,
                                 const std::vector<double>& numbers = {});

/// A step of training by torch.compile, in a Python process that takes one when it is told to: the losses of
/// the first steps are the result. Nothing where that Python has no PyTorch; prints why.
std::vector<PeerTask> compiled_peer(const std::vector<Operand>& operands, const std::vector<double>& numbers,
                                    int threads);

}  // namespace weft::speed
