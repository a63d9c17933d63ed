#pragma once
#include <memory>
#include <variant>

#include "weft/nn.h"

// Well-known transformers, built from layers.
namespace weft::nn {

/// Which layers look at what came before: heads of queries, each group of which shares a head of keys and
/// values.
struct AttentionConfig {
  int64_t width = 0, heads = 1;
  int64_t kv_heads = 0;  ///< 0: as many as heads
  int64_t head_dim = 0;  ///< 0: width / heads
  bool bias = false;     ///< of queries, keys and values
  bool out_bias = false;
  bool norm_heads = false;  ///< RMSNorm of each head's queries and keys (Qwen3)
  double norm_epsilon = 1e-6;
  Initial first = Initial::normal(0.02), first_out = Initial::normal(0.02);
};

/// Cosine and sine of the angles by which positions turn the pairs of a head's numbers: [seq, 1, head_dim /
/// 2], or, with a past, [tokens, 1, head_dim / 2].
struct Rotation {
  Tensor cosine, sine;
};

/// The KV cache of one layer: room for `capacity` tokens of each sequence, of which the first `length` are
/// valid.
struct KVCache {
  struct Layer {
    Tensor keys, values;  ///< [batch, kv_heads, capacity, head_dim]
  };
  std::vector<Layer> layers;
  Tensor length;  ///< i32 [batch]: how many tokens each sequence has; the caller of the model keeps the count
  /// i32 [batch + 1]: tokens [offsets[i], offsets[i + 1]) of a call are the next ones of sequence i, which
  /// may have none. Zeros in a fresh cache: the caller of the model sets them.
  Tensor offsets;
};
/// What there is of one layer, for it to go on from.
struct Past {
  const KVCache::Layer& layer;
  const Tensor &length, &offsets;
};

/// Causal self-attention.
///
/// Shape    x [batch, seq, width] -> the same; no rotation where the model knows positions in another way.
///          With a past, x is [tokens, width], sequence behind sequence: their keys and values are appended
///          to the past, and each token sees those of its own sequence up to itself.
/// DType    that of the parameters, in and out.
/// Errors   invalid_argument for heads that don't divide the width or are no multiple of the key heads, and x
///          of another shape or type.
/// Source   Vaswani et al., Attention is all you need (NeurIPS 2017); Ainslie et al., GQA (EMNLP 2023);
///          Su et al., RoFormer (2021).
class Attention : public Module {
 public:
  explicit Attention(const AttentionConfig& config);
  void fields(Fields& f) override;
  Tensor operator()(const Tensor& x, const Rotation* rotation = nullptr, const Past* past = nullptr) const;

 private:
  AttentionConfig config_;
  Linear query_, key_, value_, out_;
  RMSNorm query_norm_, key_norm_;
};

enum class Activation : uint8_t { gelu, gelu_tanh, relu, silu };
/// x through an activation, element by element: same shape and dtype, a float.
Tensor activate(const Tensor& x, Activation by);

/// Two layers with an activation between.
///
/// Shape    x [..., width] -> the same, through `hidden` numbers.
class MLP : public Module {
 public:
  MLP(int64_t width, int64_t hidden, Activation by, bool bias, Initial first, Initial first_out);
  void fields(Fields& f) override;
  Tensor operator()(const Tensor& x) const;

 private:
  Linear up_, down_;
  Activation by_;
};

/// An MLP whose hidden numbers are scaled by a second, activated layer.
///
/// Shape    x [..., width] -> the same, through `hidden` numbers.
/// Source   Shazeer, GLU variants improve transformer (2020).
class GatedMLP : public Module {
 public:
  GatedMLP(int64_t width, int64_t hidden, Activation by, Initial first, Initial first_out);
  void fields(Fields& f) override;
  Tensor operator()(const Tensor& x) const;

 private:
  Linear gate_, up_, down_;
  Activation by_;
};

/// A language model: tokens to scores of the next token.
///
/// Shape    tokens [batch, seq] -> logits [batch, seq, vocabulary]; both dimensions may be symbols.
class LanguageModel : public Module {
 public:
  Tensor operator()(const Tensor& tokens) const { return scores(features(tokens)); }

  /// What the blocks make of each token: [batch, seq, width]. With a cache, tokens are [tokens], those of
  /// sequence i from offsets[i] on, and features [tokens, width]: nothing is padded. Each sequence goes on
  /// from what the cache has of it, and its tokens are appended; there must be room for them.
  ///
  /// Errors   invalid_argument for tokens of another rank, or a seq above the context.
  virtual Tensor features(const Tensor& tokens, const KVCache* cache = nullptr) const = 0;
  /// Features [..., width] -> logits [..., vocabulary]: the last norm, and a product.
  virtual Tensor scores(const Tensor& features) const = 0;

  virtual int64_t vocabulary() const = 0;
  virtual int64_t context() const = 0;  ///< the longest seq
  /// A cache of zeros in the dtype of the model, on the default backend.
  ///
  /// Errors   invalid_argument for a batch below 1, or a capacity outside 1..context().
  KVCache make_cache(int64_t batch, int64_t capacity) const;

 protected:
  /// The sizes of each layer's cache.
  struct CacheShape {
    int64_t layers, kv_heads, head_dim;
    DType dtype;
  };
  virtual CacheShape cache_shape() const = 0;
};

struct GPTConfig {
  int64_t vocabulary = 0;
  int64_t context = 64;
  int64_t layers = 4, heads = 4, width = 128;
  int64_t hidden = 0;  ///< of the MLP; 0: 4 * width
  double dropout = 0;
  double epsilon = 1e-5;
  Activation activation = Activation::gelu_tanh;
  bool recompute = false;  ///< in training, blocks keep their inputs only and run again on the way back
  friend bool operator==(const GPTConfig&, const GPTConfig&) = default;
};

/// GPT-2: learned positions, LayerNorm before each part, scores by the embedding itself.
///
/// Shape    tokens [batch, seq] -> logits [batch, seq, vocabulary]; seq <= context; batch may be a symbol.
/// DType    tokens i32 or i64, logits the model's.
/// Numerics weights begin normal with deviation 0.02, those that add to the residual 0.02 / sqrt(2 layers).
/// Errors   invalid_argument for sizes below 1, a width that heads don't divide, tokens of another rank or
/// too
///          many.
/// Source   Radford et al., Language models are unsupervised multitask learners (2019), section 2.3.
class GPT : public LanguageModel {
 public:
  explicit GPT(const GPTConfig& config);
  void fields(Fields& f) override;
  Tensor features(const Tensor& tokens, const KVCache* cache = nullptr) const override;
  Tensor scores(const Tensor& features) const override;
  int64_t vocabulary() const override { return config_.vocabulary; }
  int64_t context() const override { return config_.context; }
  const GPTConfig& config() const { return config_; }

 private:
  CacheShape cache_shape() const override;
  struct Block : Module {
    explicit Block(const GPTConfig& c);
    void fields(Fields& f) override;
    Tensor operator()(const Tensor& x, const Past* past = nullptr) const;
    LayerNorm norm1, norm2;
    Attention attention;
    MLP mlp;
    Dropout drop1, drop2;
  };
  GPTConfig config_;
  Embedding tokens_, positions_;
  Dropout drop_;
  std::vector<Block> blocks_;
  LayerNorm norm_;
};

/// Rotary scaling, for contexts longer than the trained one.
struct RopeScaling {
  enum class Kind : uint8_t { none, linear, llama3 } kind = Kind::none;
  double factor = 1;  ///< ratio of the context to the trained one
  /// Of llama3: turns within the trained context below which a frequency is slowed by the whole factor, and
  /// above which it stays.
  double low_frequency = 1, high_frequency = 4;
  int64_t trained_context = 8192;
  friend bool operator==(const RopeScaling&, const RopeScaling&) = default;
};

struct LlamaConfig {
  int64_t vocabulary = 0;
  int64_t context = 2048;
  int64_t layers = 4, heads = 4, kv_heads = 4, width = 128, hidden = 352;
  int64_t head_dim = 0;  ///< 0: width / heads
  double rope_base = 10000;
  RopeScaling rope_scaling;
  double epsilon = 1e-6;
  bool qkv_bias = false;        ///< Qwen2
  bool norm_heads = false;      ///< Qwen3
  bool tied_embedding = false;  ///< scores by the embedding itself
  Activation activation = Activation::silu;
  bool recompute = false;  ///< as GPT's
  friend bool operator==(const LlamaConfig&, const LlamaConfig&) = default;
};

/// Llama and its kin: rotary positions, RMSNorm, gated MLP, grouped heads. Covers Llama 3, Qwen2.5 and Qwen3.
///
/// Shape, DType, Errors as GPT.
/// Source   Touvron et al., LLaMA (2023); Grattafiori et al., The Llama 3 herd of models (2024); Qwen2.5
/// technical
///          report (2024); Qwen3 technical report (2025).
class Llama : public LanguageModel {
 public:
  explicit Llama(const LlamaConfig& config);
  void fields(Fields& f) override;
  Tensor features(const Tensor& tokens, const KVCache* cache = nullptr) const override;
  Tensor scores(const Tensor& features) const override;
  int64_t vocabulary() const override { return config_.vocabulary; }
  int64_t context() const override { return config_.context; }
  const LlamaConfig& config() const { return config_; }

 private:
  CacheShape cache_shape() const override;
  struct Block : Module {
    explicit Block(const LlamaConfig& c);
    void fields(Fields& f) override;
    Tensor operator()(const Tensor& x, const Rotation& rotation, const Past* past = nullptr) const;
    RMSNorm norm1, norm2;
    Attention attention;
    GatedMLP mlp;
  };
  LlamaConfig config_;
  Embedding tokens_;
  std::vector<Block> blocks_;
  RMSNorm norm_;
  Linear scores_;
};

/// What makes a language model.
using LanguageModelConfig = std::variant<GPTConfig, LlamaConfig>;
/// A model without elements yet: nn::build() gives it some. Raises what the model says against its sizes.
std::unique_ptr<LanguageModel> make_model(const LanguageModelConfig& config);

}  // namespace weft::nn
