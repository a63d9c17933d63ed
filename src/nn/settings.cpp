#include "nn/settings.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace weft::nn {
namespace {

using nlohmann::json;

/// The names of an enumeration's values.
template <class E>
struct Words;
template <>
struct Words<Activation> {
  static constexpr std::pair<Activation, const char*> all[] = {{Activation::gelu, "gelu"},
                                                               {Activation::gelu_tanh, "gelu_tanh"},
                                                               {Activation::relu, "relu"},
                                                               {Activation::silu, "silu"}};
};
template <>
struct Words<RopeScaling::Kind> {
  static constexpr std::pair<RopeScaling::Kind, const char*> all[] = {{RopeScaling::Kind::none, "none"},
                                                                      {RopeScaling::Kind::linear, "linear"},
                                                                      {RopeScaling::Kind::llama3, "llama3"}};
};
template <>
struct Words<OptimizerKind> {
  static constexpr std::pair<OptimizerKind, const char*> all[] = {{OptimizerKind::adamw, "adamw"},
                                                                  {OptimizerKind::sgd, "sgd"}};
};
template <>
struct Words<ScheduleKind> {
  static constexpr std::pair<ScheduleKind, const char*> all[] = {{ScheduleKind::constant, "constant"},
                                                                 {ScheduleKind::linear, "linear"},
                                                                 {ScheduleKind::cosine, "cosine"}};
};
template <>
struct Words<DType> {
  static constexpr std::pair<DType, const char*> all[] = {
      {DType::f64, "f64"}, {DType::f32, "f32"}, {DType::f16, "f16"}, {DType::bf16, "bf16"}};
};

template <class C, class V>
void each_of_gpt(C& c, V& visit) {
  visit("vocabulary", c.vocabulary), visit("context", c.context), visit("layers", c.layers);
  visit("heads", c.heads), visit("width", c.width), visit("hidden", c.hidden);
  visit("dropout", c.dropout), visit("norm-epsilon", c.epsilon), visit("activation", c.activation);
  visit("recompute", c.recompute);
}
template <class C, class V>
void each_of_llama(C& c, V& visit) {
  visit("vocabulary", c.vocabulary), visit("context", c.context), visit("layers", c.layers);
  visit("heads", c.heads), visit("kv-heads", c.kv_heads), visit("head-dim", c.head_dim);
  visit("width", c.width), visit("hidden", c.hidden), visit("rope-base", c.rope_base);
  auto& r = c.rope_scaling;
  visit("rope-scaling", r.kind), visit("rope-factor", r.factor);
  visit("rope-low-frequency", r.low_frequency), visit("rope-high-frequency", r.high_frequency);
  visit("rope-trained-context", r.trained_context), visit("norm-epsilon", c.epsilon);
  visit("qkv-bias", c.qkv_bias), visit("norm-heads", c.norm_heads);
  visit("tied-embedding", c.tied_embedding), visit("activation", c.activation);
  visit("recompute", c.recompute);
}

/// Calls visit(name, member) for every setting: the one list of them.
template <class S, class V>
void each(S& s, V& visit) {
  visit("model", s.model);
  if (auto* gpt = std::get_if<GPTConfig>(&s.model)) each_of_gpt(*gpt, visit);
  if (auto* llama = std::get_if<LlamaConfig>(&s.model)) each_of_llama(*llama, visit);
  visit("dtype", s.dtype), visit("optimizer", s.optimizer);
  visit("beta1", s.beta1), visit("beta2", s.beta2), visit("epsilon", s.epsilon);
  visit("momentum", s.momentum), visit("weight-decay", s.weight_decay), visit("clip", s.clip);
  visit("schedule", s.schedule.kind), visit("rate", s.schedule.rate);
  visit("warmup", s.schedule.warmup), visit("least-rate", s.schedule.least);
  visit("steps", s.steps), visit("batch", s.batch), visit("accumulate", s.accumulate);
  visit("seed", s.seed), visit("compile", s.compile);
}

struct Writer {
  json out = json::object();

  void operator()(const char* name, const LanguageModelConfig& c) {
    out[name] = std::holds_alternative<GPTConfig>(c) ? "gpt" : "llama";
  }
  template <class T>
  void operator()(const char* name, const T& value) {
    if constexpr (std::is_enum_v<T>) {
      for (const auto& [v, text] : Words<T>::all)
        if (v == value) out[name] = text;
    } else {
      out[name] = value;
    }
  }
};

/// Reads up to the first wrong field.
struct Reader {
  const std::string& where;
  const json& root;
  Status status;

  const json* find(const char* name) {
    const auto at = root.find(name);
    if (at == root.end() && status.ok()) status = bad_field(where, name, "is missing");
    return status.ok() ? &*at : nullptr;
  }
  void wrong(const char* name, const json& have, const std::string& wanted) {
    status = bad_field(where, name, fmt::format("is {}, wanted {}", have.dump(), wanted));
  }

  void operator()(const char* name, LanguageModelConfig& c) {
    const json* v = find(name);
    if (!v) return;
    if (*v == "gpt") {
      c = GPTConfig{};
    } else if (*v == "llama") {
      c = LlamaConfig{};
    } else {
      wrong(name, *v, "gpt or llama");
    }
  }
  // Limits far beyond useful sizes, small enough that no product of two overflows 64 bits.
  void operator()(const char* name, int64_t& value) {
    constexpr int64_t kMost = int64_t{1} << 40;
    const json* v = find(name);
    if (!v) return;
    if (!v->is_number_integer() || *v < 0 || *v > kMost)
      return wrong(name, *v, fmt::format("0 to {}", kMost));
    value = v->get<int64_t>();
  }
  void operator()(const char* name, uint64_t& value) {
    const json* v = find(name);
    if (!v) return;
    if (!v->is_number_unsigned()) return wrong(name, *v, "a whole number");
    value = v->get<uint64_t>();
  }
  void operator()(const char* name, double& value) {
    const json* v = find(name);
    if (!v) return;
    if (!v->is_number()) return wrong(name, *v, "a number");
    value = v->get<double>();
  }
  void operator()(const char* name, bool& value) {
    const json* v = find(name);
    if (!v) return;
    if (!v->is_boolean()) return wrong(name, *v, "true or false");
    value = v->get<bool>();
  }
  template <class E>
  void operator()(const char* name, E& value) {
    const json* v = find(name);
    if (!v) return;
    std::string known;
    for (const auto& [e, text] : Words<E>::all) {
      if (*v == text) return void(value = e);
      known += fmt::format("{}{}", known.empty() ? "" : ", ", text);
    }
    wrong(name, *v, known);
  }
};

// Sizes for which a model and a step allocate before any tensor of the file is checked.
Status check_sizes(const std::string& where, const json& root) {
  const std::pair<const char*, int64_t> most[] = {
      {"layers", 4096},   {"context", 1 << 24}, {"vocabulary", 1 << 28}, {"heads", 1 << 20},
      {"width", 1 << 24}, {"hidden", 1 << 28},  {"batch", 1 << 20},      {"accumulate", 1 << 20}};
  for (const auto& [name, limit] : most) {
    const auto value = root[name].get<int64_t>();
    const int64_t least = std::string_view(name) == "hidden" ? 0 : 1;  // 0: the model's own
    if (value < least || value > limit)
      return bad_field(where, name, fmt::format("is {}, wanted {} to {}", value, least, limit));
  }
  return {};
}

}  // namespace

Status bad_field(const std::string& where, const std::string& name, const std::string& why) {
  return fail(Code::corrupt, "{}: field '{}' {}", where, name, why);
}

json settings_json(const TrainSettings& settings) {
  Writer w;
  each(settings, w);
  return w.out;
}

Status read_settings(const std::string& where, const json& root, TrainSettings& to) {
  Reader r{where, root, {}};
  each(to, r);
  WEFT_CHECK(std::move(r.status));
  return check_sizes(where, root);
}

}  // namespace weft::nn
