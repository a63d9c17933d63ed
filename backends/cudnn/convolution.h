#pragma once
#include "graph.h"

namespace weft::cudnn {

/// x, w and y of y = conv(x, w): two of them are given, the third is the result.
enum class ConvRole { x, w, y };
/// Whether it is a convolution of known sizes.
backend::Support conv_takes(const backend::OpCall&);
void describe_conv(const backend::OpCall&, ConvRole first, ConvRole second, ConvRole result, Graph&);

}  // namespace weft::cudnn
