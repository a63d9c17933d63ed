#include "nn/hf_config.h"

#include "formats/json.h"

namespace weft::nn {
namespace {

using nlohmann::json;

/// The fields of an object in a file. One that is null is as if it were not there.
class Object {
 public:
  Object(std::string path, json root) : path_(std::move(path)), root_(std::move(root)) {}

  bool has(const char* name) const { return root_.contains(name) && !root_[name].is_null(); }

  int64_t size(const char* name, std::optional<int64_t> otherwise = {}) const {
    // Far beyond what is useful, and small enough that no product leaves 64 bits.
    constexpr int64_t kMost = 1 << 28;
    const json* v = find(name, otherwise.has_value());
    if (!v) return *otherwise;
    if (!v->is_number_integer() || *v < 1 || *v > kMost)
      throw bad(name, fmt::format("wanted 1 to {}", kMost));
    return v->get<int64_t>();
  }
  double positive(const char* name, std::optional<double> otherwise = {}) const {
    const json* v = find(name, otherwise.has_value());
    if (!v) return *otherwise;
    if (!v->is_number() || !(*v > 0)) throw bad(name, "wanted a number above 0");
    return v->get<double>();
  }
  bool flag(const char* name, bool otherwise) const {
    const json* v = find(name, true);
    if (v && !v->is_boolean()) throw bad(name, "wanted true or false");
    return v ? v->get<bool>() : otherwise;
  }
  std::string word(const char* name, std::optional<std::string> otherwise = {}) const {
    const json* v = find(name, otherwise.has_value());
    if (v && !v->is_string()) throw bad(name, "wanted text");
    return v ? v->get<std::string>() : *otherwise;
  }
  Object object(const char* name) const {
    const json* v = find(name, false);
    if (!v->is_object()) throw bad(name, "wanted an object");
    return {path_ + ": " + name, *v};
  }

  /// A field that changes what a model computes, in a way that is not known here.
  void refuse_unless(const char* name, const json& supported) const {
    if (has(name) && root_[name] != supported)
      throw unsupported(name, "supported is only " + supported.dump());
  }
  Error unsupported(const char* name, const std::string& wanted) const {
    return Error(fail(Code::unsupported, "{}: field '{}' is {}; {}", path_, name,
                      root_.value(name, json()).dump(), wanted));
  }
  /// All of a list are this word.
  void refuse_unless_all(const char* name, const char* supported) const {
    if (!has(name)) return;
    for (const json& v : root_[name])
      if (v != supported) throw unsupported(name, fmt::format("supported is only \"{}\"", supported));
  }

 private:
  const json* find(const char* name, bool optional) const {
    if (has(name)) return &root_[name];
    if (!optional) throw Error(fail(Code::corrupt, "{}: field '{}' is missing", path_, name));
    return nullptr;
  }
  Error bad(const char* name, const std::string& wanted) const {
    return Error(fail(Code::corrupt, "{}: field '{}' is {}, {}", path_, name, root_[name].dump(), wanted));
  }

  std::string path_;
  json root_;
};

constexpr int64_t kMostLayers = 4096;  // a block of each is made before any tensor is looked at

int64_t layers(const Object& f, const char* name) {
  const int64_t n = f.size(name);
  if (n > kMostLayers) throw f.unsupported(name, fmt::format("at most {} are supported", kMostLayers));
  return n;
}

Activation activation(const Object& f, const char* name, const std::string& otherwise) {
  const std::string word = f.word(name, otherwise);
  if (word == "gelu_new" || word == "gelu_pytorch_tanh" || word == "gelu_fast") return Activation::gelu_tanh;
  if (word == "gelu") return Activation::gelu;
  if (word == "relu") return Activation::relu;
  if (word == "silu" || word == "swish") return Activation::silu;
  throw f.unsupported(name, "supported are gelu_new, gelu_pytorch_tanh, gelu_fast, gelu, relu, silu, swish");
}

GPTConfig gpt2(const Object& f) {
  f.refuse_unless("tie_word_embeddings", true);
  f.refuse_unless("scale_attn_weights", true);
  f.refuse_unless("scale_attn_by_inverse_layer_idx", false);
  f.refuse_unless("add_cross_attention", false);
  GPTConfig c;
  c.vocabulary = f.size("vocab_size");
  c.context = f.size("n_positions");
  c.layers = layers(f, "n_layer");
  c.heads = f.size("n_head");
  c.width = f.size("n_embd");
  c.hidden = f.size("n_inner", 4 * c.width);
  c.epsilon = f.positive("layer_norm_epsilon", 1e-5);
  c.activation = activation(f, "activation_function", "gelu_new");
  return c;
}

RopeScaling rope_scaling(const Object& f) {
  const std::string kind = f.word(f.has("type") ? "type" : "rope_type", "default");
  RopeScaling s;
  if (kind == "default") return s;
  if (kind != "linear" && kind != "llama3")
    throw f.unsupported(f.has("type") ? "type" : "rope_type", "supported are default, linear and llama3");
  s.factor = f.positive("factor");
  s.kind = RopeScaling::Kind::linear;
  if (kind == "linear") return s;
  s.kind = RopeScaling::Kind::llama3;
  s.low_frequency = f.positive("low_freq_factor");
  s.high_frequency = f.positive("high_freq_factor");
  s.trained_context = f.size("original_max_position_embeddings");
  if (s.high_frequency <= s.low_frequency)
    throw f.unsupported("high_freq_factor", "it must be above low_freq_factor");
  return s;
}

/// What llama, qwen2 and qwen3 share.
LlamaConfig llama(const Object& f) {
  f.refuse_unless("attention_bias", false);
  f.refuse_unless("mlp_bias", false);
  f.refuse_unless("use_sliding_window", false);
  f.refuse_unless_all("layer_types", "full_attention");
  f.refuse_unless("partial_rotary_factor", 1.0);
  LlamaConfig c;
  c.vocabulary = f.size("vocab_size");
  c.context = f.size("max_position_embeddings");
  c.layers = layers(f, "num_hidden_layers");
  c.heads = f.size("num_attention_heads");
  c.kv_heads = f.size("num_key_value_heads", c.heads);
  c.width = f.size("hidden_size");
  c.hidden = f.size("intermediate_size");
  if (f.has("head_dim")) c.head_dim = f.size("head_dim");
  c.epsilon = f.positive("rms_norm_eps", 1e-6);
  c.tied_embedding = f.flag("tie_word_embeddings", false);
  c.activation = activation(f, "hidden_act", "silu");
  // transformers 5 has both in one field.
  const bool together = f.has("rope_parameters");
  if (together) f.object("rope_parameters").refuse_unless("partial_rotary_factor", 1.0);
  c.rope_base = (together ? f.object("rope_parameters") : f).positive("rope_theta", 10000);
  if (together || f.has("rope_scaling"))
    c.rope_scaling = rope_scaling(f.object(together ? "rope_parameters" : "rope_scaling"));
  return c;
}

}  // namespace

HfConfig read_hf_config(const std::string& path) {
  const Object f(path, value_or_raise(formats::read_json_object(path)));
  const std::string type = f.word("model_type");
  if (f.has("quantization_config"))
    throw f.unsupported("quantization_config", "only plain floats are supported");
  if (type == "gpt2") return {type, gpt2(f)};
  if (type != "llama" && type != "qwen2" && type != "qwen3")
    throw f.unsupported("model_type", "supported are gpt2, llama, qwen2 and qwen3");
  LlamaConfig c = llama(f);
  c.qkv_bias = type == "qwen2";
  c.norm_heads = type == "qwen3";
  if (type == "qwen3" && c.head_dim == 0) c.head_dim = 128;  // its default, whatever the width
  return {type, c};
}

}  // namespace weft::nn
