#pragma once
#include <deque>

#include "descriptor.h"

// What cuDNN is asked to compute: tensors and operations on them.
namespace weft::cudnn {

using Sizes = std::vector<int64_t>;

cudnnDataType_t type_of(DType);
/// Row-major.
Sizes packed(const Sizes&);

/// Which results of an engine will do.
struct Rules {
  bool tensor_cores = true;  ///< for f32 these are products of TF32
  bool repeatable = false;   ///< the same bits in each run
};

struct Tensor {
  Descriptor made;
  int64_t id = 0;
  Sizes sizes;
};

class Graph {
 public:
  /// Where the memory of a tensor comes from.
  struct Operand {
    enum class From { input, output, scratch, value } from;
    int64_t id;     ///< cuDNN's name for the tensor
    int64_t which;  ///< of the call's inputs or outputs; bytes of scratch memory; the bits of a value
  };
  using Of = const Tensor*;

  /// Operands of the call. Their sizes may be cut into other axes than the call's.
  Of input(int64_t which, DType, Sizes, Sizes strides);
  Of output(int64_t which, DType, Sizes, Sizes strides);
  /// f32 that kernels hand on to each other.
  Of scratch(Sizes);
  /// One number, as a tensor of as many axes.
  Of value(float, size_t rank = 4);
  Of value(int32_t, size_t rank = 4);
  /// What is never written to memory, or as cuDNN likes.
  Of inner(cudnnDataType_t, Sizes);
  Of inner(cudnnDataType_t, Sizes, Sizes strides);

  Of pointwise(cudnnPointwiseMode_t mode, Of x, Of y) { return pointwise(mode, x, nullptr, nullptr, y); }
  Of pointwise(cudnnPointwiseMode_t mode, Of x, Of b, Of y) { return pointwise(mode, x, b, nullptr, y); }
  Of pointwise(cudnnPointwiseMode_t, Of x, Of b, Of mask, Of y, cudnnDataType_t computes = CUDNN_DATA_FLOAT,
               int64_t axis = -1);
  Of matmul(Of a, Of b, Of c);
  Of reduce(cudnnReduceTensorOp_t, Of x, Of y);
  /// The same elements in another order of axes, which y's strides say.
  Of reshape(Of x, Of y);
  void add(Descriptor operation) { operations_.push_back(std::move(operation)); }

  Rules rules;
  const std::vector<Operand>& operands() const { return operands_; }
  const std::deque<Descriptor>& operations() const { return operations_; }

 private:
  Of tensor(cudnnDataType_t, Sizes, const Sizes& strides, bool is_virtual, bool by_value);
  Of operand(Operand::From, int64_t which, cudnnDataType_t, Sizes, const Sizes& strides);

  std::deque<Tensor> tensors_;  // a deque: addresses stay
  std::deque<Descriptor> operations_;
  std::vector<Operand> operands_;
};

}  // namespace weft::cudnn
