#pragma once
#include <deque>
#include <functional>

#include "import/call.h"

// The tensors of a graph that PyTorch wrote, where some are views of others and some are written in place.
namespace weft::importer {

/// A node, the tensors that it reads, and one of its results.
struct Converted {
  const NodeInfo* node = nullptr;
  const AtenOp* op = nullptr;
  std::vector<int> inputs;
  size_t result = 0;
};

/// Numbers tensors, and holds the value that each has now. A write to a view replaces the value of what it is
/// a view of; other views of that are made anew when they are read next.
class Tensors {
 public:
  /// Makes the values of a node; used again for views whose base was written.
  using Convert = std::function<Result<ir::ValueList>(const Converted&)>;

  int add(ir::Value value);
  /// The result of `from`, which shows elements of from.inputs[0].
  int add_view(ir::Value value, Converted from);

  /// A result that nothing is made of; reading it fails for this reason.
  int add_missing(std::string why);

  /// The value now.
  Result<ir::Value> read(int tensor, const Convert& convert);
  /// Replaces the value, and with it that of all tensors that share memory with this one.
  Status write(int tensor, ir::Value value, ir::Builder& b, const Convert& convert);
  /// Was the tensor, or a view of it, written?
  bool written(int tensor) const { return at(tensor).version > 0; }

 private:
  struct Tensor {
    ir::Value value;
    int base = -1;         // the tensor that it is a view of
    Converted from;        // the node that made the view
    int version = 0;       // how often the value was replaced
    int base_version = 0;  // of the base, when the value was made
    std::string unknown;   // not empty: whether a write reached it is not known, and why
  };
  const Tensor& at(int tensor) const { return tensors_[static_cast<size_t>(tensor)]; }
  Tensor& at(int tensor) { return tensors_[static_cast<size_t>(tensor)]; }

  std::deque<Tensor> tensors_;
};

}  // namespace weft::importer
