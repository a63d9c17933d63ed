#include "convolution.h"

#include "weft/shared/ops/conv.hpp"

namespace weft::cudnn {

using backend::OpCall;
using backend::Support;
using backend::TypeView;

namespace {

/// One spatial axis is made two, of which the first has one element: engines want two or three.
void widen(Sizes& list, int64_t value, size_t at) {
  if (list.size() == at + 1) list.insert(list.begin() + static_cast<std::ptrdiff_t>(at), value);
}

Sizes sizes_of(TypeView t) {
  Sizes sizes(t.max().begin(), t.max().end());
  widen(sizes, 1, 2);
  return sizes;
}

Descriptor windows_of(const OpCall& c, int64_t rank, DType dtype) {
  const auto list = [&](const char* name, int64_t i, int64_t missing) {
    const auto values = c.attr(name).ints();
    return values.empty() ? missing : values[static_cast<size_t>(i)];
  };
  Sizes strides, dilations, before, after;
  for (int64_t d = 0; d < rank; ++d) {
    strides.push_back(list("stride", d, 1)), dilations.push_back(list("dilation", d, 1));
    before.push_back(list("padding", 2 * d, 0)), after.push_back(list("padding", 2 * d + 1, 0));
  }
  widen(strides, 1, 0), widen(dilations, 1, 0), widen(before, 0, 0), widen(after, 0, 0);
  Descriptor windows(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  windows.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, dtype == DType::f64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<int64_t>(strides.size()))
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, strides)
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, dilations)
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, before)
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, after);
  windows.finalize();
  return windows;
}

struct Names {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t windows, x, w, y, alpha, beta;
};
Names names_of(ConvRole result) {
  switch (result) {
    case ConvRole::y:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case ConvRole::x:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    default:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  }
}

}  // namespace

Support conv_takes(const OpCall& c) { return shared::detail::accepts_conv(c); }

void describe_conv(const OpCall& c, ConvRole first, ConvRole second, ConvRole result, Graph& g) {
  const DType dtype = c.output(0).dtype();
  Graph::Of by_role[3];
  const auto place = [&](ConvRole role, int64_t which, bool written) {
    const Sizes sizes = sizes_of(written ? c.output(which) : c.input(which));
    by_role[static_cast<size_t>(role)] =
        written ? g.output(which, dtype, sizes, packed(sizes)) : g.input(which, dtype, sizes, packed(sizes));
  };
  place(first, 0, false), place(second, 1, false), place(result, 0, true);
  const Names names = names_of(result);
  Descriptor operation(names.operation);
  operation.set(names.windows, windows_of(c, c.output(0).rank() - 2, dtype))
      .set(names.x, by_role[static_cast<size_t>(ConvRole::x)]->made)
      .set(names.w, by_role[static_cast<size_t>(ConvRole::w)]->made)
      .set(names.y, by_role[static_cast<size_t>(ConvRole::y)]->made);
  if (dtype == DType::f64)
    operation.set(names.alpha, 1.0).set(names.beta, 0.0);
  else
    operation.set(names.alpha, 1.0f).set(names.beta, 0.0f);
  operation.finalize();
  g.add(std::move(operation));
  g.rules.tensor_cores = dtype == DType::f16 || dtype == DType::bf16 ||
                         (dtype == DType::f32 && c.precision() >= WEFT_PRECISION_TF32);
}

}  // namespace weft::cudnn
