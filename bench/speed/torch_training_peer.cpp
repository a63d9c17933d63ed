#include <c10/core/CPUAllocator.h>
#include <torch/torch.h>

#include <atomic>
#include <memory>

#include "torch_training.h"

namespace weft::speed {
namespace {

using at::Tensor;

// What torch.optim.AdamW(fused=True) calls, for all parameters at once.
class Adam {
 public:
  Adam(Tensors parameters, const double* a)
      : parameters_(std::move(parameters)),
        rate_(a[0]),
        beta1_(a[1]),
        beta2_(a[2]),
        epsilon_(a[3]),
        decay_(a[4]) {
    for (const auto& p : parameters_)
      mean_.push_back(at::zeros_like(p)), square_.push_back(at::zeros_like(p)),
          steps_.push_back(at::zeros({}));
  }
  void step() {
    at::NoGradGuard none;
    Tensors gradients;
    for (auto& p : parameters_) gradients.push_back(p.grad());
    at::_foreach_add_(steps_, 1);
    at::_fused_adamw_(parameters_, gradients, mean_, square_, {}, steps_, rate_, beta1_, beta2_, decay_,
                      epsilon_, false, false);
    for (auto& p : parameters_) p.mutable_grad().reset();
  }

 private:
  Tensors parameters_, mean_, square_, steps_;
  double rate_, beta1_, beta2_, epsilon_, decay_;
};

constexpr int64_t kFirst = 8;  // losses that are kept

// A step with `loss_of`, and the losses of the first ones.
std::function<Tensor()> steps(const Tensors& parameters, const double* a, std::function<Tensor()> loss_of) {
  const auto adam = std::make_shared<Adam>(parameters, a);
  auto losses = at::zeros({kFirst});
  return [=, taken = int64_t{0}]() mutable {
    at::AutoGradMode recorded(true);
    const auto loss = loss_of();
    loss.backward();
    adam->step();
    if (taken < kFirst) losses.mutable_data_ptr<float>()[taken++] = loss.item<float>();
    return losses;
  };
}

Tensor leaf(const Tensor& t) { return t.clone().set_requires_grad(true); }

struct Block {
  Tensor norm1_w, norm1_b, qkv_w, qkv_b, out_w, out_b, norm2_w, norm2_b, up_w, up_b, down_w, down_b;
};

struct Gpt {
  Tensor tokens, positions, norm_w, norm_b;
  std::vector<Block> blocks;
  int64_t heads;

  // Queries, keys and values are one product, as PyTorch's users write it.
  Gpt(const Tensors& x, int64_t n_heads, int64_t layers) : heads(n_heads) {
    size_t i = 0;
    const auto next = [&] { return leaf(x[i++]); };
    tokens = next(), positions = next();
    for (int64_t l = 0; l < layers; ++l) {
      Block b;
      b.norm1_w = next(), b.norm1_b = next();
      b.qkv_w = leaf(at::cat({x[i], x[i + 2], x[i + 4]})),
      b.qkv_b = leaf(at::cat({x[i + 1], x[i + 3], x[i + 5]}));
      i += 6;
      for (Tensor* t : {&b.out_w, &b.out_b, &b.norm2_w, &b.norm2_b, &b.up_w, &b.up_b, &b.down_w, &b.down_b})
        *t = next();
      blocks.push_back(b);
    }
    norm_w = next(), norm_b = next();
  }
  Tensors parameters() const {
    Tensors all = {tokens, positions, norm_w, norm_b};
    for (const auto& b : blocks)
      all.insert(all.end(), {b.norm1_w, b.norm1_b, b.qkv_w, b.qkv_b, b.out_w, b.out_b, b.norm2_w, b.norm2_b,
                             b.up_w, b.up_b, b.down_w, b.down_b});
    return all;
  }
  Tensor attention(const Block& b, const Tensor& x) const {
    const int64_t batch = x.size(0), seq = x.size(1), width = x.size(2);
    const auto parts = at::linear(x, b.qkv_w, b.qkv_b).split(width, 2);
    const auto head = [&](const Tensor& t) {
      return t.view({batch, seq, heads, width / heads}).transpose(1, 2);
    };
    const auto y =
        at::scaled_dot_product_attention(head(parts[0]), head(parts[1]), head(parts[2]), {}, 0.0, true);
    return at::linear(y.transpose(1, 2).contiguous().view({batch, seq, width}), b.out_w, b.out_b);
  }
  Tensor operator()(const Tensor& ids) const {
    const int64_t width = tokens.size(1);
    const auto norm = [&](const Tensor& x, const Tensor& w, const Tensor& b) {
      return at::layer_norm(x, {width}, w, b, 1e-5);
    };
    auto x = at::embedding(tokens, ids) + at::embedding(positions, at::arange(ids.size(1)));
    for (const auto& b : blocks) {
      x = x + attention(b, norm(x, b.norm1_w, b.norm1_b));
      const auto hidden = at::gelu(at::linear(norm(x, b.norm2_w, b.norm2_b), b.up_w, b.up_b), "tanh");
      x = x + at::linear(hidden, b.down_w, b.down_b);
    }
    return at::linear(norm(x, norm_w, norm_b), tokens);
  }
};

// ---- allocation

std::atomic<int64_t> g_live{0}, g_peak{0};

// PyTorch's own allocator, counting requested sizes.
class Counting final : public c10::Allocator {
 public:
  explicit Counting(c10::Allocator* inner) : inner_(inner) {}
  c10::DataPtr allocate(size_t n) override {
    auto inner = std::make_unique<Held>(Held{inner_->allocate(n), static_cast<int64_t>(n)});
    const int64_t live = g_live += static_cast<int64_t>(n);
    for (int64_t peak = g_peak; live > peak && !g_peak.compare_exchange_weak(peak, live);) {
    }
    void* data = inner->pointer.get();
    return {data, inner.release(), release, c10::Device(c10::DeviceType::CPU)};
  }
  void copy_data(void* to, const void* from, std::size_t n) const override { default_copy_data(to, from, n); }

 private:
  struct Held {
    c10::DataPtr pointer;
    int64_t bytes;
  };
  static void release(void* held) {
    const std::unique_ptr<Held> h(static_cast<Held*>(held));
    g_live -= h->bytes;
  }
  c10::Allocator* inner_;
};

}  // namespace

std::function<Tensor()> train_gpt(const Tensors& x, const Numbers& a) {
  const auto heads = static_cast<int64_t>(a[0]), layers = static_cast<int64_t>(a[1]);
  const auto gpt = std::make_shared<Gpt>(x, heads, layers);
  const auto ids = x[x.size() - 2].clone(), targets = x.back().clone().view({-1});
  return steps(gpt->parameters(), a.data() + 2, [=] {
    const auto scores = (*gpt)(ids);
    return at::cross_entropy_loss(scores.view({-1, scores.size(2)}), targets);
  });
}

std::function<Tensor()> train_mlp(const Tensors& x, const Numbers& a) {
  const Tensors p = {leaf(x[0]), leaf(x[1]), leaf(x[2]), leaf(x[3])};
  const auto in = x[4].clone(), targets = x[5].clone();
  return steps(p, a.data(), [=] {
    return at::cross_entropy_loss(at::linear(at::relu(at::linear(in, p[0], p[1])), p[2], p[3]), targets);
  });
}

double peak_bytes_of(const std::function<void()>& run) {
  static Counting counting(c10::GetCPUAllocator());
  c10::Allocator* before = c10::GetCPUAllocator();
  c10::SetCPUAllocator(&counting, 1);
  g_live = g_peak = 0;
  run();
  c10::SetCPUAllocator(before, 1);
  return static_cast<double>(g_peak);
}

}  // namespace weft::speed
