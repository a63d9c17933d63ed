#include "weft/pretrained.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/element.h"
#include "formats/file.h"
#include "formats/json.h"
#include "formats/safetensors.h"
#include "nn/hf_config.h"
#include "nn/range.h"
#include "weft/pieces.h"

namespace weft::nn {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// All tensors of a folder, by name.
class Weights {
 public:
  explicit Weights(const fs::path& folder) : folder_(folder) {
    const fs::path one = folder / "model.safetensors", index = folder / "model.safetensors.index.json";
    if (!formats::is_missing(one.string()) || formats::is_missing(index.string())) {
      add(one);
    } else {
      const auto map = weight_map(index);
      std::set<std::string> shards;
      for (const auto& [tensor, shard] : map) shards.insert(shard);
      for (const std::string& shard : shards) add(folder / shard);
      check(map, index);
    }
  }

  bool has(const std::string& name) const { return tensors_.contains(name); }
  /// Null if there is none of this name. Does not count as used.
  const formats::TensorEntry* find(const std::string& name) const {
    const auto at = tensors_.find(name);
    return at == tensors_.end() ? nullptr : at->second;
  }
  const formats::TensorEntry& take(const std::string& name) {
    const auto at = tensors_.find(name);
    if (at == tensors_.end())
      throw Error(fail(Code::corrupt, "{}: tensor '{}' is missing", folder_.string(), name));
    taken_.insert(name);
    return *at->second;
  }
  /// An unused tensor that is not irrelevant belongs to another model.
  template <class Meaningless>
  void refuse_the_rest(const std::string& type, Meaningless meaningless) const {
    for (const auto& [name, entry] : tensors_)
      if (!taken_.contains(name) && !meaningless(name))
        throw Error(fail(Code::corrupt, "{}: tensor '{}' has no place in the {} that config.json describes",
                         folder_.string(), name, type));
  }

 private:
  // The shard of each tensor.
  static std::map<std::string, std::string> weight_map(const fs::path& index) {
    const json root = value_or_raise(formats::read_json_object(index.string()));
    if (!root.contains("weight_map") || !root["weight_map"].is_object())
      throw Error(fail(Code::corrupt, "{}: field 'weight_map' is missing, or no object", index.string()));
    std::map<std::string, std::string> map;
    for (const auto& [tensor, file] : root["weight_map"].items()) {
      if (!file.is_string() || fs::path(file.get<std::string>()).filename() != file.get<std::string>())
        throw Error(fail(Code::corrupt, "{}: weight_map: '{}' is {}, wanted the name of a file beside it",
                         index.string(), tensor, file.dump()));
      map.emplace(tensor, file.get<std::string>());
    }
    return map;
  }
  // The index must list every tensor with its file: others belong to another version of the model.
  void check(const std::map<std::string, std::string>& map, const fs::path& index) const {
    for (const auto& [tensor, shard] : map)
      if (const auto at = shards_.find(tensor); at == shards_.end() || at->second != shard)
        throw Error(fail(Code::corrupt, "{}: weight_map: '{}' is not in {}", index.string(), tensor, shard));
    for (const auto& [tensor, shard] : shards_)
      if (!map.contains(tensor))
        throw Error(
            fail(Code::corrupt, "{}: weight_map has no '{}', but {} does", index.string(), tensor, shard));
  }

  void add(const fs::path& path) {
    files_.push_back(value_or_raise(formats::map_safetensors(path.string())));
    for (const auto& t : files_.back().tensors) {
      if (!tensors_.emplace(t.name, &t).second)
        throw Error(fail(Code::corrupt, "{}: tensor '{}' is in another shard too", path.string(), t.name));
      shards_.emplace(t.name, path.filename().string());
    }
  }

  fs::path folder_;
  std::deque<formats::Safetensors> files_;     // a deque: elements don't move
  std::map<std::string, std::string> shards_;  // the file of each tensor
  std::map<std::string, const formats::TensorEntry*> tensors_;
  std::set<std::string> taken_;
};

/// The source of a field.
struct Origin {
  std::string name;
  // GPT-2 stores weights as [in, out], with queries, keys and values in one tensor.
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
  /// Masks and tables that older releases saved, and the tied head of a model.
  static bool meaningless(const std::string& name, bool tied) {
    return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
           name.ends_with("rotary_emb.inv_freq") || (tied && name == "lm_head.weight");
  }

 private:
  bool gpt2_;
  std::string prefix_;
};

/// Slices of a field along its first axis: elements per slice, offset in the source tensor, and stride of
/// elements there.
struct Slices {
  size_t size, first, step, inner_step;
};
Slices slices_of(const Field& f, const Origin& o) {
  size_t size = 1;
  for (size_t i = 1; i < f.shape.size(); ++i) size *= static_cast<size_t>(f.shape[i]);
  if (!o.conv1d) return {size, 0, size, 1};
  const auto out = static_cast<size_t>(f.shape[0]);
  return {size, static_cast<size_t>(o.part) * out, 1, static_cast<size_t>(o.parts) * out};
}

// `piece` = the slices from `first`, converted; contiguous ones are read together.
template <class To, class From>
void convert(const Slices& s, size_t first, const std::byte* from, std::span<std::byte> piece) {
  const size_t n = piece.size() / sizeof(To) / s.size;
  const auto one = [&](size_t slice, size_t i) {
    From v;
    std::memcpy(&v, from + (s.first + (first + slice) * s.step + i * s.inner_step) * sizeof v, sizeof v);
    const To to = shared::store<To>(shared::load(v));
    std::memcpy(piece.data() + (slice * s.size + i) * sizeof to, &to, sizeof to);
  };
  if (s.inner_step == 1) {
    for (size_t slice = 0; slice < n; ++slice)
      for (size_t i = 0; i < s.size; ++i) one(slice, i);
  } else {
    for (size_t i = 0; i < s.size; ++i)
      for (size_t slice = 0; slice < n; ++slice) one(slice, i);
  }
}
void convert(const Slices& s, DType to, DType from, size_t first, const std::byte* bytes,
             std::span<std::byte> piece) {
  shared::visit<shared::Kinds::floats>(to, [&](auto t) {
    shared::visit<shared::Kinds::all>(from, [&](auto f) {
      if constexpr (shared::is_any_float<typename decltype(f)::type>)
        convert<typename decltype(t)::type, typename decltype(f)::type>(s, first, bytes, piece);
    });
  });
}

Tensor taken(const Field& f, const Origin& o, Weights& weights, const std::string& folder) {
  const formats::TensorEntry& e = weights.take(o.name);
  std::vector<int64_t> shape = f.shape;
  if (o.conv1d) std::ranges::reverse(shape), shape.back() *= o.parts;
  if (e.shape != shape || !is_float(e.dtype))
    throw Error(fail(Code::corrupt, "{}: tensor '{}' is {}{}, config.json wants floats {}", folder, o.name,
                     name(e.dtype), text(e.shape), text(shape)));
  const Slices s = slices_of(f, o);
  const auto check_range = [&](std::span<const std::byte> elements) {
    if (overflows(e.dtype, elements, f.dtype))
      throw Error(invalid("{}: tensor '{}', {}, has numbers beyond {}; ask for a wider dtype", folder, o.name,
                          name(e.dtype), name(f.dtype)));
  };
  if (o.conv1d && o.part == 0) check_range(e.bytes);  // of all parts, which are contiguous
  // Drops pages of the file after reading, so that at most one piece is in memory.
  const size_t slice_bytes = o.conv1d ? 0 : s.size * byte_size(e.dtype);
  Tensor t = tensor_from_pieces(
      [&](int64_t first, std::span<std::byte> piece) {
        const auto at = static_cast<size_t>(first);
        const auto from =
            e.bytes.subspan(at * slice_bytes, piece.size() / byte_size(f.dtype) / s.size * slice_bytes);
        check_range(from);
        if (e.dtype == f.dtype && !o.conv1d)
          std::ranges::copy(from, piece.begin());
        else
          convert(s, f.dtype, e.dtype, at, e.bytes.data(), piece);
        if (!o.conv1d) formats::release_pages(from);
      },
      f.shape, f.dtype);
  formats::release_pages(e.bytes);
  return t;
}

// If config.json ties the head to the embedding, a stored head must be equal.
void check_tied_head(const Weights& weights, const Names& names, const std::string& folder) {
  const std::string tokens = names.of("tokens.weight").name, head = "lm_head.weight";
  const formats::TensorEntry *one = weights.find(tokens), *other = weights.find(head);
  if (!one || !other) return;
  constexpr size_t kPiece = size_t{1} << 20;
  bool same = one->dtype == other->dtype && one->bytes.size() == other->bytes.size();
  for (size_t at = 0; same && at < one->bytes.size(); at += kPiece) {
    const size_t n = std::min(kPiece, one->bytes.size() - at);
    const auto a = one->bytes.subspan(at, n), b = other->bytes.subspan(at, n);
    same = std::ranges::equal(a, b);
    formats::release_pages(a), formats::release_pages(b);
  }
  if (!same)
    throw Error(
        fail(Code::corrupt,
             "{}: config.json ties the head to the embedding, but tensor '{}' differs from '{}'; set "
             "tie_word_embeddings to false if the model has a head of its own, else remove the tensor",
             folder, head, tokens));
}

// Errors about a model's sizes name the file that they come from.
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
  if (tied(config)) check_tied_head(weights, names, folder);
  replace(*model, [&](const Field& f) { return taken(f, names.of(f.name), weights, folder); }, dtype);
  weights.refuse_the_rest(config.type,
                          [&](const std::string& name) { return Names::meaningless(name, tied(config)); });
  return model;
}

}  // namespace weft::nn
