#pragma once
#include <unordered_map>

#include "eager/tensor_impl.h"
#include "ir/graph.h"

namespace weft::eager {

/// One recording in progress on this thread. Tensors from outside that it touches are captured: they become
/// states of the graph if the recording updates them, and weights otherwise.
class TraceState {
 public:
  TraceState();
  ~TraceState();

  ir::Graph graph;
  uint32_t runs = 0;  // how many parts have run again so far
  uint64_t id() const { return id_; }

  Result<ir::Value> value_of(const Tensor& t);
  /// `t` was updated in place: from now on it stands for `value`.
  void rebind(const Tensor& t, ir::Value value);
  Tensor wrap(ir::Value v) const { return make_traced(graph.type(v), v.id(), id_); }

  struct Captured {
    Tensor tensor;
    Tensor grad_before;  // given back when the trace ends
    std::string name;
    int32_t before = -1, now = -1;
  };
  std::vector<Captured> captured;  // in the order in which they were touched

 private:
  uint64_t id_;
  std::unordered_map<const seam::Buffer*, size_t> index_;  // handles on one buffer are one state
};

/// The recording of this thread, or null.
TraceState* active_trace();

}  // namespace weft::eager
