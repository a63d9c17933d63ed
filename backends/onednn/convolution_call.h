#pragma once
#include "weft/backend.hpp"

// conv_channels_last, as a call or as a body with the sum and relu that follow: what both records do.
namespace weft::onednn {

backend::Support accepts_convolution(const backend::OpCall& call);
backend::Outcome prepare_convolution(const backend::OpCall& call, weft_plan& plan);
void release_convolution(weft_plan* plan);
backend::Outcome launch_convolution(const backend::Launch& launch);
/// Constant filters are wanted in oneDNN's layout; others are rearranged in each launch.
backend::Outcome pack_filters(const weft_plan& plan, int64_t input, backend::TensorView from,
                              backend::TensorView to, const backend::Host& host);

}  // namespace weft::onednn
