#include <array>
#include <cmath>

#include "measure.hpp"
#include "weft/backend.h"
#include "weft/quantize.h"

// Products of 8-bit floats, attention and convolutions.
namespace weft::bench {

namespace {

void measure_op(const std::string& name, const Op& f, const std::vector<Tensor>& inputs, double operations) {
  std::vector<Tensor> wide;
  for (const Tensor& t : inputs) wide.push_back(cast(t, DType::f32));
  report(name, f, inputs, f(wide), operations, WEFT_PRECISION_BF16);
}

}  // namespace

void measure_f8() {
  for (const int64_t n : {4096, 8192}) {
    const Quantized a = quantize_rows(random(1, {n, n})), b = quantize_rows(random(2, {n, n}));
    const std::vector<Tensor> inputs = {a.values, b.values, a.scale, b.scale},
                              of_tensors = {a.values, b.values, Tensor::scalar(0.5), Tensor::scalar(2)};
    const Tensor product = matmul(cast(a.values, DType::f32), cast(b.values, DType::f32), false, true);
    const std::vector exact = {product * reshape(a.scale, {n, 1}) * b.scale}, plain = {product};
    const Op op = [](const std::vector<Tensor>& in) {
      return std::vector{scaled_matmul(in[0], in[1], in[2], in[3], Tensor(), DType::bf16)};
    };
    const double work = 2 * std::pow(static_cast<double>(n), 3);
    for (const uint8_t precision : {WEFT_PRECISION_STRICT, WEFT_PRECISION_BF16}) {
      const std::string name = std::to_string(n) + (precision ? " bf16 allowed" : " strict");
      report("scaled_matmul " + name, op, of_tensors, plain, work, precision);
      report("scaled_matmul rows " + name, op, inputs, exact, work, precision);
    }
  }
}

void measure_heads() {
  for (const auto& [batch, rows, heads, dim] : {std::array<int64_t, 4>{16, 1024, 16, 128},
                                                {4, 4096, 16, 128},
                                                {1, 16384, 16, 128},
                                                {32, 1024, 12, 64}}) {
    const std::string name = std::to_string(rows) + " x " + std::to_string(dim);
    std::vector<Tensor> all;
    for (uint64_t i = 0; i < 4; ++i) all.push_back(random(i, {batch, heads, rows, dim}));
    const std::vector<Tensor> qkv(all.begin(), all.begin() + 3);
    // Half of all pairs: two products forward, and five backward, of two operations each.
    const auto pairs = static_cast<double>(batch * heads * rows * rows * dim);
    const auto causal = [](const std::vector<Tensor>& in) {
      return attention(in[0], in[1], in[2], Tensor(), Tensor(), true);
    };
    measure_op("attention " + name, [&](const auto& in) { return std::vector{causal(in)}; }, qkv, 2 * pairs);
    const Op both = [&](const std::vector<Tensor>& in) {
      std::vector<Tensor> leaves, gradients;
      for (size_t i = 0; i < 3; ++i) leaves.push_back(in[i].detach().requires_grad(true));
      causal(leaves).backward(in[3]);
      for (const Tensor& leaf : leaves) gradients.push_back(leaf.grad());
      return gradients;
    };
    measure_op("attention and gradient " + name, both, all, 7 * pairs);
  }
}

void measure_images() {
  struct Sizes {
    int64_t channels, size, filters, kernel, stride;
  };
  constexpr int64_t kImages = 64;
  for (const auto [channels, size, filters, kernel, stride] :
       {Sizes{64, 56, 64, 3, 1}, Sizes{128, 28, 256, 3, 2}, Sizes{256, 14, 1024, 1, 1}})
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const int64_t half = kernel / 2, out = (size + 2 * half - kernel) / stride + 1;
      const Tensor x = random(1, {kImages, channels, size, size}, dtype),
                   w = random(2, {filters, channels, kernel, kernel}, dtype),
                   dy = random(3, {kImages, filters, out, out}, dtype);
      const Shape strides{stride, stride}, padding{half, half, half, half};
      const auto work = static_cast<double>(2 * kImages * filters * out * out * channels * kernel * kernel);
      const auto name = [&](const char* op) {
        return std::string(op) + " " + weft::name(dtype) + " " + std::to_string(channels) + " x " +
               std::to_string(size);
      };
      measure_op(
          name("conv"), [&](const auto& in) { return std::vector{conv(in[0], in[1], strides, padding)}; },
          {x, w}, work);
      const Shape rest(2, Dim(stride - 1));
      measure_op(
          name("conv_transpose"),
          [&](const auto& in) {
            return std::vector{conv_transpose(in[0], in[1], strides, padding, {}, 1, rest)};
          },
          {dy, w}, work);
      measure_op(
          name("conv_weight_grad"),
          [&](const auto& in) {
            return std::vector{conv_weight_grad(in[0], in[1], {kernel, kernel}, strides, padding)};
          },
          {x, dy}, work);
    }
}

}  // namespace weft::bench
