#pragma once
#include <ATen/ATen.h>

#include <functional>
#include <vector>

// Steps of training in PyTorch, eagerly: forward, token cross-entropy, backward, AdamW.
namespace weft::speed {

using Tensors = std::vector<at::Tensor>;
using Numbers = std::vector<double>;

/// Each run takes a step; gives the losses of the first ones. `x`: the parameters in the order of
/// nn::parameters(), then what goes in and the targets. `a`: heads and layers (GPT), the rate, both betas,
/// epsilon and decay of AdamW.
std::function<at::Tensor()> train_gpt(const Tensors& x, const Numbers& a);
std::function<at::Tensor()> train_mlp(const Tensors& x, const Numbers& a);

/// The most bytes that PyTorch's allocator has handed out at once during a run, beyond those before it.
double peak_bytes_of(const std::function<void()>& run);

}  // namespace weft::speed
