#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "formats/file.h"
#include "formats/json.h"
#include "nn/hf_config.h"
#include "weft/pretrained.h"

namespace weft::nn {
namespace {

// Fields of generation_config.json that change no token, or none with that value. Includes the fields of
// PretrainedGeneration, for config.json; load_generation() reads them.
constexpr Harmless kFields[] = {
    {"do_sample"},
    {"max_length"},
    {"max_new_tokens"},
    {"min_p"},
    {"repetition_penalty"},
    {"stop_strings"},
    {"suppress_tokens"},
    {"temperature"},
    {"top_k"},
    {"top_p"},
    // Other search methods.
    {"diversity_penalty", "0.0"},
    {"early_stopping"},  // of beam search, with one beam
    {"length_penalty"},
    {"num_beam_groups", "1"},
    {"num_beams", "1"},
    {"num_return_sequences", "1"},
    {"penalty_alpha", "0.0"},
    // Changes of scores.
    {"bad_words_ids", "[]"},
    {"begin_suppress_tokens", "[]"},
    {"encoder_no_repeat_ngram_size", "0"},
    {"encoder_repetition_penalty", "1.0"},
    {"epsilon_cutoff", "0.0"},
    {"eta_cutoff", "0.0"},
    {"guidance_scale", "1.0"},
    {"min_length", "0"},
    {"min_new_tokens", "0"},
    {"no_repeat_ngram_size", "0"},
    {"remove_invalid_values", "false"},
    {"renormalize_logits"},  // sampling stays the same
    {"token_healing", "false"},
    {"typical_p", "1.0"},
    // Caching.
    {"cache_config"},
    {"cache_implementation"},
    // Additional results of generate().
    {"output_logits"},
    {"output_scores"},
    {"return_dict_in_generate"},
};
// Names that config.json has too.
constexpr Harmless kAlone[] = {
    {"_from_model_config"},   {"bos_token_id"},         {"decoder_start_token_id"},
    {"output_attentions"},    {"output_hidden_states"}, {"pad_token_id"},
    {"transformers_version"}, {"trust_remote_code"},    {"use_cache"},
};

constexpr double kMost = std::numeric_limits<double>::max();

PretrainedGeneration read(const Object& f) {
  PretrainedGeneration g;
  const bool samples = f.flag("do_sample", true);
  if (f.has("do_sample") && samples) g.temperature = 1, g.top_k = 50;
  if (f.has("temperature")) g.temperature = f.between("temperature", 0, kMost);
  if (!samples) g.temperature = 0;
  if (f.has("top_k")) g.top_k = f.size("top_k", {}, 0);
  if (f.has("top_p")) g.top_p = f.between("top_p", 0, 1);
  if (f.has("min_p")) g.min_p = f.between("min_p", 0, 1);
  if (f.has("repetition_penalty")) g.repetition_penalty = f.positive("repetition_penalty");
  if (f.has("max_new_tokens")) g.max_new_tokens = f.size("max_new_tokens");
  if (f.has("max_length")) g.max_length = f.size("max_length");
  g.ends = f.tokens("eos_token_id");
  g.never = f.tokens("suppress_tokens");
  g.stops = f.words("stop_strings");
  return g;
}

}  // namespace

std::span<const Harmless> generation_fields() { return kFields; }

PretrainedGeneration load_generation(const std::string& folder) {
  const auto at = [&](const char* name) { return (std::filesystem::path(folder) / name).string(); };
  const std::string path = at("config.json"), own = at("generation_config.json");
  const PretrainedGeneration older = read(Object(path, value_or_raise(formats::read_json_object(path))));
  if (formats::is_missing(own)) return older;
  const Object f(own, value_or_raise(formats::read_json_object(own)));
  PretrainedGeneration g = read(f);
  f.refuse_the_rest("text generation", {kFields, kAlone});
  for (const int32_t id : older.ends)
    if (std::ranges::find(g.ends, id) == g.ends.end()) g.ends.push_back(id);
  return g;
}

}  // namespace weft::nn
