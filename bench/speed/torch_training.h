#pragma once
#include <ATen/ATen.h>

#include <functional>
#include <vector>

// Steps of training in PyTorch, eagerly: forward, token cross-entropy, backward, AdamW.
namespace weft::speed {

using Tensors = std::vector<at::Tensor>;
using Numbers = std::vector<double>;

/// Each run takes a step; the result is the losses of the first ones. `x`: the parameters in the order of
/// nn::parameters(), then the input and the targets. `a`: heads and layers (GPT), the rate, both betas,
/// epsilon and decay of AdamW.
std::function<at::Tensor()> train_gpt(const Tensors& x, const Numbers& a);
std::function<at::Tensor()> train_mlp(const Tensors& x, const Numbers& a);

/// The peak of bytes allocated by PyTorch's allocator during a run, beyond those before it.
double peak_bytes_of(const std::function<void()>& run);

}  // namespace weft::speed
