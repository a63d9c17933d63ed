#include <ATen/Parallel.h>
#include <torch/torch.h>
#include <torch/version.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "peer.h"
#include "torch_training.h"

// PyTorch through its C++ interface, the fastest. Tensors are created before the clock starts.
namespace {

using at::Tensor;
using weft::speed::Numbers;
using weft::speed::Tensors;

struct Task {
  std::function<Tensor()> run;
  Tensor result;
};
using Maker = std::function<Tensor()> (*)(const Tensors&, const Numbers&);

std::function<Tensor()> adamw(const Tensors& x, const Numbers&) {
  auto p = x[0].clone().set_requires_grad(true);
  p.mutable_grad() = x[1];
  auto optimizer =
      std::make_shared<torch::optim::AdamW>(std::vector<Tensor>{p}, torch::optim::AdamWOptions(1e-3));
  return [p, optimizer] {
    optimizer->step();
    return p;
  };
}
// What torch.optim.AdamW(fused=True) calls.
std::function<Tensor()> adamw_fused(const Tensors& x, const Numbers&) {
  auto p = x[0].clone(), g = x[1].clone(), m = at::zeros_like(p), v = at::zeros_like(p);
  auto step = at::ones({});
  return [=]() mutable {
    at::_fused_adamw_({p}, {g}, {m}, {v}, {}, {step}, 1e-3, 0.9, 0.999, 0.01, 1e-8, false, false);
    return p;
  };
}
std::function<Tensor()> attention(const Tensors& x, const Numbers& a) {
  return
      [x, causal = a[0] != 0] { return at::scaled_dot_product_attention(x[0], x[1], x[2], {}, 0.0, causal); };
}
std::function<Tensor()> attention_backward(const Tensors& x, const Numbers& a) {
  Tensors leaves;
  for (int i = 0; i < 3; ++i) leaves.push_back(x[i].detach().clone().set_requires_grad(true));
  at::AutoGradMode recorded(true);
  const auto y = at::scaled_dot_product_attention(leaves[0], leaves[1], leaves[2], {}, 0.0, a[0] != 0);
  return [leaves, y, dy = x[3]] { return torch::autograd::grad({y}, leaves, {dy}, true)[0]; };
}
std::function<Tensor()> conv2d(const Tensors& x, const Numbers& a) {
  const auto stride = static_cast<int64_t>(a[0]), padding = static_cast<int64_t>(a[1]);
  return [x, stride, padding] { return at::conv2d(x[0], x[1], {}, stride, padding); };
}
// A GPT with greedy decoding from one token and an in-place cache of keys and values.
// Queries, keys and values are one product, as users of PyTorch write it.
class Gpt {
 public:
  // Weights in the order in which nn::GPT names them; numbers: layers, heads, the first token, how many to
  // read.
  Gpt(const Tensors& x, const Numbers& a)
      : tokens_(x[0]),
        positions_(x[1]),
        norm_(x.end()[-2]),
        norm_bias_(x.end()[-1]),
        heads_(a[1]),
        first_(a[2]),
        n_(a[3]) {
    for (int64_t l = 0; l < a[0]; ++l) {
      const Tensor* w = &x[2 + 16 * l];
      blocks_.push_back({w[0], w[1], at::cat({w[2], w[4], w[6]}), at::cat({w[3], w[5], w[7]}), w[8], w[9],
                         w[10], w[11], w[12], w[13], w[14], w[15],
                         at::zeros({1, heads_, n_, width() / heads_}),
                         at::zeros({1, heads_, n_, width() / heads_})});
    }
  }
  Tensor run() const {
    int64_t token = first_;
    Tensor scores;
    for (int64_t i = 0; i < n_; ++i) {
      scores = read(at::full({1, 1}, token, at::kLong), i);
      token = at::argmax(scores).item<int64_t>();
    }
    return scores;
  }

 private:
  struct Block {
    Tensor norm1, norm1_bias, qkv, qkv_bias, out, out_bias, norm2, norm2_bias, up, up_bias, down, down_bias,
        keys, values;
  };
  int64_t width() const { return tokens_.size(1); }
  Tensor split(const Tensor& t) const { return t.view({1, 1, heads_, width() / heads_}).transpose(1, 2); }

  Tensor read(const Tensor& token, int64_t at) const {
    Tensor x =
        at::add(at::embedding(tokens_, token), at::embedding(positions_, at::full({1, 1}, at, at::kLong)));
    for (const Block& b : blocks_) {
      const auto qkv =
          at::linear(at::layer_norm(x, {width()}, b.norm1, b.norm1_bias), b.qkv, b.qkv_bias).chunk(3, -1);
      b.keys.narrow(2, at, 1).copy_(split(qkv[1]));
      b.values.narrow(2, at, 1).copy_(split(qkv[2]));
      const auto y = at::scaled_dot_product_attention(split(qkv[0]), b.keys.narrow(2, 0, at + 1),
                                                      b.values.narrow(2, 0, at + 1));
      x = at::add(x, at::linear(y.transpose(1, 2).reshape({1, 1, width()}), b.out, b.out_bias));
      const auto h = at::linear(at::layer_norm(x, {width()}, b.norm2, b.norm2_bias), b.up, b.up_bias);
      x = at::add(x, at::linear(at::gelu(h, "tanh"), b.down, b.down_bias));
    }
    return at::linear(at::layer_norm(x, {width()}, norm_, norm_bias_), tokens_).view({-1});
  }

  Tensor tokens_, positions_, norm_, norm_bias_;
  int64_t heads_, first_, n_;
  std::vector<Block> blocks_;
};
std::function<Tensor()> generate(const Tensors& x, const Numbers& a) {
  return [gpt = std::make_shared<const Gpt>(x, a)] { return gpt->run(); };
}
std::function<Tensor()> chain(const Tensors& x, const Numbers&) {
  const auto w = x[1].detach().clone().set_requires_grad(true);
  return [x = x[0], w] {
    at::AutoGradMode recorded(true);
    Tensor y = x;
    for (int i = 0; i < 10; ++i) y = at::mul(y, w);
    return torch::autograd::grad({y}, {w}, {x})[0];
  };
}

const std::map<std::string, Maker> makers = {
    {"matmul",
     [](const Tensors& x, const Numbers&) -> std::function<Tensor()> {
       return [x] { return at::matmul(x[0], x[1]); };
     }},
    {"add",
     [](const Tensors& x, const Numbers&) -> std::function<Tensor()> {
       return [x] { return at::add(x[0], x[1]); };
     }},
    {"softmax",
     [](const Tensors& x, const Numbers&) -> std::function<Tensor()> {
       return [x] { return at::softmax(x[0], -1); };
     }},
    {"gelu",
     [](const Tensors& x, const Numbers&) -> std::function<Tensor()> {
       return [x] { return at::gelu(x[0]); };
     }},
    {"layer_norm",
     [](const Tensors& x, const Numbers&) -> std::function<Tensor()> {
       return [x] { return at::layer_norm(x[0], x[1].sizes(), x[1], x[2], 1e-5); };
     }},
    {"rms_norm",
     [](const Tensors& x, const Numbers&) -> std::function<Tensor()> {
       return [x] { return at::rms_norm(x[0], x[1].sizes(), x[1], 1e-5); };
     }},
    {"cross_entropy",
     [](const Tensors& x, const Numbers&) -> std::function<Tensor()> {
       return [x] { return at::cross_entropy_loss(x[0], x[1]); };
     }},
    {"adamw", adamw},
    {"adamw_fused", adamw_fused},
    {"attention", attention},
    {"attention_backward", attention_backward},
    {"conv2d", conv2d},
    {"generate", generate},
    {"chain10", chain},
    {"train_gpt", weft::speed::train_gpt},
    {"train_mlp", weft::speed::train_mlp},
};

void* make(const char* op, const PeerTensor* operands, int n_operands, const double* numbers, int n_numbers) {
  const auto maker = makers.find(op);
  if (maker == makers.end()) return nullptr;
  Tensors x;
  for (int i = 0; i < n_operands; ++i)
    x.push_back(at::from_blob(const_cast<void*>(operands[i].data),
                              at::IntArrayRef(operands[i].shape, operands[i].rank),
                              operands[i].is_index ? at::kLong : at::kFloat));
  at::NoGradGuard none;
  return new Task{maker->second(x, Numbers(numbers, numbers + n_numbers)), {}};
}
void run(void* task) {
  at::NoGradGuard none;
  auto& t = *static_cast<Task*>(task);
  t.result = t.run();
}
const float* result(void* task, int64_t* n) {
  auto& t = *static_cast<Task*>(task);
  t.result = t.result.detach().contiguous();
  *n = t.result.numel();
  return t.result.data_ptr<float>();
}
void release(void* task) { delete static_cast<Task*>(task); }
void threads(int n) { at::set_num_threads(n); }
double peak_bytes(void* task) {
  return weft::speed::peak_bytes_of([task] { run(task); });
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const PeerLibrary* weft_peer() {
  static const PeerLibrary library = {"PyTorch", TORCH_VERSION, make,    run,
                                      result,    release,       threads, peak_bytes};
  return &library;
}
