#include "graph.h"

#include <bit>

namespace weft::cudnn {

namespace {

constexpr int64_t kAlignment = 16;  // of all operands, in bytes; Plan::run sees to it

}  // namespace

cudnnDataType_t type_of(DType t) {
  switch (t) {
    case DType::f64: return CUDNN_DATA_DOUBLE;
    case DType::f16: return CUDNN_DATA_HALF;
    case DType::bf16: return CUDNN_DATA_BFLOAT16;
    default: return CUDNN_DATA_FLOAT;
  }
}

Sizes packed(const Sizes& sizes) {
  Sizes strides(sizes.size(), 1);
  for (size_t d = sizes.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * sizes[d + 1];
  return strides;
}

Graph::Of Graph::tensor(cudnnDataType_t type, Sizes sizes, const Sizes& strides, bool is_virtual,
                        bool by_value) {
  Tensor& t = tensors_.emplace_back(Tensor{Descriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR),
                                           static_cast<int64_t>(tensors_.size()) + 1, std::move(sizes)});
  t.made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, t.sizes)
      .set(CUDNN_ATTR_TENSOR_STRIDES, strides)
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, t.id)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment)
      .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, is_virtual)
      .set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, by_value)
      .finalize();
  return &t;
}

Graph::Of Graph::operand(Operand::From from, int64_t which, cudnnDataType_t type, Sizes sizes,
                         const Sizes& strides) {
  const Of t = tensor(type, std::move(sizes), strides, false, from == Operand::From::value);
  operands_.push_back({from, t->id, which});
  return t;
}

Graph::Of Graph::input(int64_t which, DType type, Sizes sizes, Sizes strides) {
  return operand(Operand::From::input, which, type_of(type), std::move(sizes), strides);
}
Graph::Of Graph::output(int64_t which, DType type, Sizes sizes, Sizes strides) {
  return operand(Operand::From::output, which, type_of(type), std::move(sizes), strides);
}
Graph::Of Graph::scratch(Sizes sizes) {
  auto bytes = static_cast<int64_t>(sizeof(float));
  for (const int64_t size : sizes) bytes *= size;
  const Sizes strides = packed(sizes);
  return operand(Operand::From::scratch, bytes, CUDNN_DATA_FLOAT, std::move(sizes), strides);
}
Graph::Of Graph::value(float v, size_t rank) {
  return operand(Operand::From::value, std::bit_cast<int32_t>(v), CUDNN_DATA_FLOAT, Sizes(rank, 1),
                 Sizes(rank, 1));
}
Graph::Of Graph::value(int32_t v, size_t rank) {
  return operand(Operand::From::value, v, CUDNN_DATA_INT32, Sizes(rank, 1), Sizes(rank, 1));
}
Graph::Of Graph::inner(cudnnDataType_t type, Sizes sizes) {
  const Sizes strides = packed(sizes);
  return inner(type, std::move(sizes), strides);
}
Graph::Of Graph::inner(cudnnDataType_t type, Sizes sizes, Sizes strides) {
  return tensor(type, std::move(sizes), strides, true, false);
}

Graph::Of Graph::pointwise(cudnnPointwiseMode_t mode, Of x, Of b, Of mask, Of y, cudnnDataType_t computes,
                           int64_t axis) {
  Descriptor what(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  what.set(CUDNN_ATTR_POINTWISE_MODE, mode).set(CUDNN_ATTR_POINTWISE_MATH_PREC, computes);
  if (axis >= 0) what.set(CUDNN_ATTR_POINTWISE_AXIS, axis);
  what.finalize();
  Descriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x->made)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y->made);
  if (b) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b->made);
  if (mask) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, mask->made);
  add(std::move(operation.finalize()));
  return y;
}

Graph::Of Graph::matmul(Of a, Of b, Of c) {
  Descriptor what(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  what.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT).finalize();
  Descriptor operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, what)
      .set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a->made)
      .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b->made)
      .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, c->made);
  add(std::move(operation.finalize()));
  return c;
}

Graph::Of Graph::reduce(cudnnReduceTensorOp_t how, Of x, Of y) {
  Descriptor what(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  what.set(CUDNN_ATTR_REDUCTION_OPERATOR, how)
      .set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .finalize();
  Descriptor operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, what)
      .set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x->made)
      .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y->made);
  add(std::move(operation.finalize()));
  return y;
}

Graph::Of Graph::reshape(Of x, Of y) {
  Descriptor operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x->made).set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y->made);
  add(std::move(operation.finalize()));
  return y;
}

}  // namespace weft::cudnn
