#include "weft/pretrained.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>
#include <set>

#include "base/element.h"
#include "formats/json.h"
#include "formats/safetensors.h"
#include "nn/hf_config.h"
#include "nn/host_zeros.h"

namespace weft::nn {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// All tensors of a folder, by name.
class Weights {
 public:
  explicit Weights(const fs::path& folder) : folder_(folder) {
    const fs::path one = folder / "model.safetensors", index = folder / "model.safetensors.index.json";
    std::error_code no_such_name;
    if (fs::exists(one, no_such_name) || !fs::exists(index, no_such_name)) {
      add(one);
    } else {
      for (const std::string& shard : shards(index)) add(folder / shard);
    }
  }

  bool has(const std::string& name) const { return tensors_.contains(name); }
  const formats::TensorEntry& take(const std::string& name) {
    const auto at = tensors_.find(name);
    if (at == tensors_.end())
      throw Error(fail(Code::corrupt, "{}: tensor '{}' is missing", folder_.string(), name));
    taken_.insert(name);
    return *at->second;
  }
  /// A tensor that nobody took and that means something is part of another model.
  template <class Meaningless>
  void refuse_the_rest(const std::string& type, Meaningless meaningless) const {
    for (const auto& [name, entry] : tensors_)
      if (!taken_.contains(name) && !meaningless(name))
        throw Error(fail(Code::corrupt, "{}: tensor '{}' has no place in the {} that config.json describes",
                         folder_.string(), name, type));
  }

 private:
  static std::set<std::string> shards(const fs::path& index) {
    const json root = value_or_raise(formats::read_json_object(index.string()));
    if (!root.contains("weight_map") || !root["weight_map"].is_object())
      throw Error(fail(Code::corrupt, "{}: field 'weight_map' is missing, or no object", index.string()));
    std::set<std::string> names;
    for (const auto& [tensor, file] : root["weight_map"].items()) {
      if (!file.is_string() || fs::path(file.get<std::string>()).filename() != file.get<std::string>())
        throw Error(fail(Code::corrupt, "{}: weight_map: '{}' is {}, wanted the name of a file beside it",
                         index.string(), tensor, file.dump()));
      names.insert(file.get<std::string>());
    }
    return names;
  }

  void add(const fs::path& path) {
    files_.push_back(value_or_raise(formats::map_safetensors(path.string())));
    for (const auto& t : files_.back().tensors)
      if (!tensors_.emplace(t.name, &t).second)
        throw Error(fail(Code::corrupt, "{}: tensor '{}' is in another shard too", path.string(), t.name));
  }

  fs::path folder_;
  std::deque<formats::Safetensors> files_;  // its elements stay where they are
  std::map<std::string, const formats::TensorEntry*> tensors_;
  std::set<std::string> taken_;
};

/// Where a field of ours comes from.
struct Origin {
  std::string name;
  // GPT-2 keeps weights as [in, out], and one tensor for queries, keys and values, side by side.
  bool conv1d = false;
  int64_t part = 0, parts = 1;
};

struct Word {
  std::string_view ours, theirs;
};
constexpr Word kGpt2Words[] = {
    {"tokens", "wte"}, {"positions", "wpe"},  {"blocks", "h"},     {"norm", "ln_f"},  {"norm1", "ln_1"},
    {"norm2", "ln_2"}, {"attention", "attn"}, {"query", "c_attn"}, {"key", "c_attn"}, {"value", "c_attn"},
    {"out", "c_proj"}, {"up", "c_fc"},        {"down", "c_proj"},
};
constexpr Word kLlamaWords[] = {
    {"tokens", "embed_tokens"},
    {"blocks", "layers"},
    {"norm1", "input_layernorm"},
    {"norm2", "post_attention_layernorm"},
    {"attention", "self_attn"},
    {"query", "q_proj"},
    {"key", "k_proj"},
    {"value", "v_proj"},
    {"out", "o_proj"},
    {"query_norm", "q_norm"},
    {"key_norm", "k_norm"},
    {"gate", "gate_proj"},
    {"up", "up_proj"},
    {"down", "down_proj"},
};

std::string translated(std::string_view name, std::span<const Word> words) {
  std::string out;
  while (!name.empty()) {
    const std::string_view part = name.substr(0, name.find('.'));
    name.remove_prefix(std::min(name.size(), part.size() + 1));
    const auto at = std::ranges::find(words, part, &Word::ours);
    out.append(at == words.end() ? part : at->theirs).append(name.empty() ? "" : ".");
  }
  return out;
}

/// The names of one kind of model. A base model without its scores is saved without the prefix.
class Names {
 public:
  Names(const std::string& type, const Weights& weights) : gpt2_(type == "gpt2") {
    const std::string prefix = gpt2_ ? "transformer." : "model.";
    if (weights.has(prefix + (gpt2_ ? "wte.weight" : "embed_tokens.weight"))) prefix_ = prefix;
  }

  Origin of(std::string_view ours) const {
    if (ours == "scores.weight") return {"lm_head.weight"};
    if (!gpt2_) return {prefix_ + translated(ours, kLlamaWords)};
    Origin o{prefix_ + translated(ours, kGpt2Words)};
    o.conv1d = o.name.find(".c_") != o.name.npos;
    if (o.name.find(".c_attn.") != o.name.npos) {
      o.parts = 3;
      o.part = ours.find(".query.") != ours.npos ? 0 : ours.find(".key.") != ours.npos ? 1 : 2;
    }
    return o;
  }
  /// Masks and tables that older releases saved, and the scores of a model that has them tied.
  static bool meaningless(const std::string& name, bool tied) {
    return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
           name.ends_with("rotary_emb.inv_freq") || (tied && name == "lm_head.weight");
  }

 private:
  bool gpt2_;
  std::string prefix_;
};

// Where element i of a field lies in the tensor that it comes from.
size_t place(const Field& f, const Origin& o, size_t i) {
  if (!o.conv1d) return i;
  const auto out = static_cast<size_t>(f.shape[0]),
             in = static_cast<size_t>(f.shape.size() == 2 ? f.shape[1] : 1);
  return i % in * (static_cast<size_t>(o.parts) * out) + static_cast<size_t>(o.part) * out + i / in;
}

Tensor taken(const Field& f, const Origin& o, Weights& weights, const std::string& folder) {
  const formats::TensorEntry& e = weights.take(o.name);
  std::vector<int64_t> shape = f.shape;
  if (o.conv1d) std::ranges::reverse(shape), shape.back() *= o.parts;
  if (e.shape != shape || !is_float(e.dtype))
    throw Error(fail(Code::corrupt, "{}: tensor '{}' is {}{}, config.json wants floats {}", folder, o.name,
                     name(e.dtype), text(e.shape), text(shape)));
  if (e.dtype == f.dtype && !o.conv1d) return Tensor::from_bytes(e.bytes, f.shape, f.dtype);
  auto bytes = host_zeros(f.dtype, f.shape);
  for (size_t i = 0, n = bytes.size() / byte_size(f.dtype); i < n; ++i)
    store_element(f.dtype, bytes.data(), i, load_element<double>(e.dtype, e.bytes.data(), place(f, o, i)));
  return Tensor::from_bytes(bytes, f.shape, f.dtype);
}

// What a model says against its sizes is said of the file that they come from.
std::unique_ptr<LanguageModel> made(const HfConfig& config, const std::string& path) {
  try {
    return make_model(config.model);
  } catch (const Error& e) {
    throw Error(Status(e.status()).at(path));
  }
}

bool tied(const HfConfig& c) {
  const auto* llama = std::get_if<LlamaConfig>(&c.model);
  return !llama || llama->tied_embedding;
}

}  // namespace

std::unique_ptr<LanguageModel> load_pretrained(const std::string& folder, DType dtype) {
  if (!is_float(dtype) || !is_compute(dtype))
    throw Error(invalid("load_pretrained: dtype must be f64, f32, f16 or bf16, got {}", name(dtype)));
  const std::string path = (fs::path(folder) / "config.json").string();
  const HfConfig config = read_hf_config(path);
  auto model = made(config, path);
  Weights weights(folder);
  const Names names(config.type, weights);
  replace(*model, [&](const Field& f) { return taken(f, names.of(f.name), weights, folder); }, dtype);
  weights.refuse_the_rest(config.type,
                          [&](const std::string& name) { return Names::meaningless(name, tied(config)); });
  return model;
}

}  // namespace weft::nn
