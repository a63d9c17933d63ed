#include "nn/hf_config.h"

#include "formats/json.h"
#include "nn/hf_object.h"

namespace weft::nn {
namespace {

// ---- irrelevant fields

// For training, for other uses of the class, about saving. load_generation() reads the fields of text
// generation.
constexpr Harmless kCommon[] = {
    {"_attn_implementation_autoset"},
    {"_name_or_path"},
    {"add_cross_attention", "false"},
    {"architectures"},
    {"attention_dropout"},
    {"attn_implementation"},
    {"bos_token_id"},
    {"chunk_size_feed_forward"},
    {"cls_token_id"},
    {"decoder_start_token_id"},
    {"dtype"},
    {"eos_token_id"},
    {"finetuning_task"},
    {"gradient_checkpointing"},
    {"id2label"},
    {"initializer_range"},
    {"is_decoder"},
    {"is_encoder_decoder", "false"},
    {"label2id"},
    {"mask_token_id"},
    {"model_max_length"},
    {"model_type"},
    {"num_labels"},
    {"output_attentions"},
    {"output_hidden_states"},
    {"pad_token_id"},
    {"problem_type"},
    {"pruned_heads", "{}"},
    {"return_dict"},
    {"sep_token_id"},
    {"task_specific_params"},
    {"tf_legacy_loss"},
    {"tie_encoder_decoder", "false"},
    {"tokenizer_class"},
    {"torch_dtype"},
    {"torchscript"},
    {"transformers_version"},
    {"unk_token_id"},
    {"unsloth_fixed"},
    {"unsloth_version"},
    {"use_bfloat16"},
    {"use_cache"},
};
constexpr Harmless kGpt2[] = {
    {"attn_pdrop"},
    {"embd_pdrop"},
    {"reorder_and_upcast_attn"},  // rounding
    {"resid_pdrop"},
    {"scale_attn_by_inverse_layer_idx", "false"},
    {"scale_attn_weights", "true"},
    {"summary_activation"},
    {"summary_first_dropout"},
    {"summary_proj_to_labels"},
    {"summary_type"},
    {"summary_use_proj"},
    {"tie_word_embeddings", "true"},
};
constexpr Harmless kLlama[] = {
    {"attention_bias", "false"},
    {"mlp_bias", "false"},
    {"partial_rotary_factor", "1.0"},
    {"pretraining_tp"},  // splits products: rounding
    {"rope_interleaved", "false"},
    {"is_llama_config", "true"},
    // From Qwen2 saved as a Llama.
    {"max_window_layers"},
    {"use_sliding_window", "false"},
};
constexpr Harmless kQwen[] = {
    {"mlp_bias", "false"},
    {"partial_rotary_factor", "1.0"},
    {"use_mrope", "false"},
    {"use_sliding_window", "false"},
    // Unused without use_sliding_window.
    {"max_window_layers"},
    {"sliding_window"},
};
constexpr Harmless kQwen2[] = {{"attention_bias", "true"}};
constexpr Harmless kQwen3[] = {{"attention_bias", "false"}};
constexpr Harmless kRope[] = {{"partial_rotary_factor", "1.0"}};

// ---- the model

constexpr int64_t kMostLayers = 4096;  // all blocks are created before any tensor is checked

int64_t layers(const Object& f, const char* name) { return f.size(name, {}, 1, kMostLayers); }

Activation activation(const Object& f, const char* name, const std::string& otherwise) {
  const std::string word = f.word(name, otherwise);
  if (word == "gelu_new" || word == "gelu_pytorch_tanh" || word == "gelu_fast") return Activation::gelu_tanh;
  if (word == "gelu") return Activation::gelu;
  if (word == "relu") return Activation::relu;
  if (word == "silu" || word == "swish") return Activation::silu;
  throw f.unsupported(name, "supported are gelu_new, gelu_pytorch_tanh, gelu_fast, gelu, relu, silu, swish");
}

GPTConfig gpt2(const Object& f) {
  GPTConfig c;
  c.vocabulary = f.size("vocab_size");
  c.context = f.size("n_positions");
  if (f.size("n_ctx", c.context) != c.context) throw f.unsupported("n_ctx", "n_positions must be the same");
  c.layers = layers(f, "n_layer");
  c.heads = f.size("n_head");
  c.width = f.size("n_embd");
  c.hidden = f.size("n_inner", 4 * c.width);
  c.epsilon = f.positive("layer_norm_epsilon", 1e-5);
  c.activation = activation(f, "activation_function", "gelu_new");
  return c;
}

/// The rotary embedding, from one object of a file.
struct Rope {
  RopeScaling scaling;
  std::optional<double> base;
  friend bool operator==(const Rope&, const Rope&) = default;
};

RopeScaling rope_scaling(const Object& f) {
  const bool older = f.has("type");
  const std::string kind = f.word("rope_type", older ? f.word("type") : "default");
  if (older && f.word("type") != kind)
    throw f.unsupported("type", fmt::format("'rope_type' is \"{}\"; remove the one that is wrong", kind));
  RopeScaling s;
  if (kind == "default") return s;
  if (kind != "linear" && kind != "llama3")
    throw f.unsupported(f.has("rope_type") ? "rope_type" : "type",
                        "supported are default, linear and llama3");
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

// transformers 4 has rope_theta and rope_scaling, transformers 5 both in rope_parameters; if a file has all
// three, they must agree.
Rope rope(const Object& f) {
  std::optional<Rope> rope;
  for (const char* name : {"rope_parameters", "rope_scaling"}) {
    if (!f.has(name)) continue;
    const Object o = f.object(name);
    Rope one{rope_scaling(o), {}};
    if (o.has("rope_theta")) one.base = o.positive("rope_theta");
    o.refuse_the_rest("this kind of position", {kRope});
    if (rope && !one.base) one.base = rope->base;
    if (rope && !rope->base) rope->base = one.base;
    if (rope && *rope != one)
      throw f.unsupported(name, "'rope_parameters' says something else; remove the one that is wrong");
    rope = one;
  }
  if (!rope) rope.emplace();
  if (f.has("rope_theta")) {
    const double base = f.positive("rope_theta");
    if (rope->base.value_or(base) != base)
      throw f.unsupported(
          "rope_theta",
          fmt::format("beside it, the parameters of RoPE say {}; remove the one that is wrong", *rope->base));
    rope->base = base;
  }
  return *rope;
}

/// The common part of llama, qwen2 and qwen3.
LlamaConfig llama(const Object& f) {
  for (const auto& kind : f.words("layer_types"))
    if (kind != "full_attention")
      throw f.unsupported("layer_types", "supported is only \"full_attention\" for every layer");
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
  const Rope turned = rope(f);
  c.rope_base = turned.base.value_or(10000);
  c.rope_scaling = turned.scaling;
  return c;
}

}  // namespace

HfConfig read_hf_config(const std::string& path) {
  const Object f(path, value_or_raise(formats::read_json_object(path)));
  const std::string type = f.word("model_type");
  if (f.has("quantization_config"))
    throw f.unsupported("quantization_config", "only plain floats are supported");
  if (type == "gpt2") {
    HfConfig c{type, gpt2(f)};
    f.refuse_the_rest(type, {kCommon, kGpt2, generation_fields()});
    return c;
  }
  if (type != "llama" && type != "qwen2" && type != "qwen3")
    throw f.unsupported("model_type", "supported are gpt2, llama, qwen2 and qwen3");
  LlamaConfig c = llama(f);
  c.qkv_bias = type == "qwen2";
  c.norm_heads = type == "qwen3";
  if (type == "qwen3" && c.head_dim == 0) c.head_dim = 128;  // its default for any width
  if (type == "llama")
    f.refuse_the_rest(type, {kCommon, kLlama, generation_fields()});
  else
    f.refuse_the_rest(
        type, {kCommon, kQwen, c.qkv_bias ? std::span(kQwen2) : std::span(kQwen3), generation_fields()});
  return {type, c};
}

}  // namespace weft::nn
