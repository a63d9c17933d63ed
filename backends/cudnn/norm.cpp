#include "norm.h"

namespace weft::cudnn {

using backend::OpCall;
using backend::Support;
using backend::TypeView;

Support norm_takes(const OpCall& c, bool centred) {
  const DType t = c.input(0).dtype();
  if (t != DType::f32 && t != DType::f16 && t != DType::bf16)
    return Support::no("computes on f32, f16 and bf16, got {}", t);
  if (!c.input(1).has() || (centred && !c.input(2).has()))
    return Support::no("wants a weight{}", centred ? " and a bias" : "");
  return Support::yes();
}

// Rows are a batch, and their elements channels.
void describe_norm(const OpCall& c, bool centred, Graph& g) {
  const TypeView x = c.input(0);
  const int64_t trailing = centred ? c.attr("trailing").integer(1) : 1;
  int64_t rows = 1, columns = 1;
  for (int64_t d = 0; d < x.rank(); ++d)
    (d < x.rank() - trailing ? rows : columns) *= x.max()[static_cast<size_t>(d)];
  const Sizes all = {rows, columns, 1, 1}, strides = {columns, 1, columns, columns}, row = {1, columns, 1, 1},
              row_strides = {columns, 1, columns, columns};
  const DType type = x.dtype();
  Descriptor operation(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_NORM_FWD_MODE, centred ? CUDNN_LAYER_NORM : CUDNN_RMS_NORM)
      .set(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_NORM_FWD_INFERENCE)
      .set(CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, g.input(0, type, all, strides)->made)
      .set(CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, g.input(1, type, row, row_strides)->made)
      .set(CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC,
           g.value(static_cast<float>(c.attr("epsilon").real(1e-5)))->made)
      .set(CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, g.output(0, type, all, strides)->made);
  if (centred)
    operation.set(CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, g.input(2, type, row, row_strides)->made);
  operation.finalize();
  g.add(std::move(operation));
}

}  // namespace weft::cudnn
