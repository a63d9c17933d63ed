#pragma once
#include "graph.h"

namespace weft::cudnn {

/// Rows of x, normalized: layer_norm with a mean, rms_norm without. Weights (and biases) are inputs 1 (and
/// 2).
backend::Support norm_takes(const backend::OpCall&, bool centred);
void describe_norm(const backend::OpCall&, bool centred, Graph&);

}  // namespace weft::cudnn
