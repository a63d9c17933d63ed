#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/models.h"

namespace weft::nn {

/// Reads a model as Hugging Face's libraries save it: a folder with `config.json` and `model.safetensors`, or
/// the shards that `model.safetensors.index.json` lists. The model is on the default backend and not in
/// training; dropout is left out.
///
/// Kinds    `model_type` gpt2 gives a GPT; llama, qwen2 (Qwen2.5 too) and qwen3 give a Llama.
/// DType    weights are stored as any float type and converted to `dtype`.
/// Memory   that of the weights in `dtype`: files are read in pieces.
/// Errors   unavailable when a file is missing; unsupported for a kind of model, a field, or a value of one,
///          not known here; corrupt for missing, unexpected or misshapen tensors and fields, and for a head
///          that differs from the embedding although tie_word_embeddings says that they are one;
///          invalid_argument for another `dtype` than f64, f32, f16 and bf16, and for a weight that is finite
///          in the file and not in `dtype`. All name file and field.
std::unique_ptr<LanguageModel> load_pretrained(const std::string& folder, DType dtype = DType::f32);

/// How a Hugging Face folder wants its text chosen; a field that it does not have is empty.
struct PretrainedGeneration {
  std::optional<double> temperature;  ///< 0 where `do_sample` is false
  std::optional<int64_t> top_k;
  std::optional<double> top_p, min_p, repetition_penalty;
  std::optional<int64_t> max_new_tokens;  ///< of the text that is made
  std::optional<int64_t> max_length;      ///< of prompt and text together; max_new_tokens goes before it
  std::vector<int32_t> ends;              ///< eos_token_id, here and in config.json
  std::vector<int32_t> never;             ///< suppress_tokens
  std::vector<std::string> stops;         ///< stop_strings
};
/// Reads `generation_config.json`; without one, the same fields of `config.json`, as older releases of
/// transformers saved them. Where `do_sample` is true, temperature is 1 and top_k 50 unless they are given,
/// as in transformers.
///
/// Errors   as load_pretrained(): a field that changes the text and is not known here is refused by name.
PretrainedGeneration load_generation(const std::string& folder);

}  // namespace weft::nn
