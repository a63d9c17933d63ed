#pragma once
#include <memory>
#include <string>

#include "weft/models.h"

namespace weft::nn {

/// Reads a model as Hugging Face's libraries save it: a folder with `config.json` and `model.safetensors`, or
/// the shards that `model.safetensors.index.json` lists. The model is on the default backend and not in
/// training; dropout is left out.
///
/// Kinds    `model_type` gpt2 gives a GPT; llama, qwen2 (Qwen2.5 too) and qwen3 give a Llama.
/// DType    weights are stored as any float type and converted to `dtype`.
/// Errors   unavailable when a file is missing; unsupported for a kind of model, or a value of a field, not
///          known here; corrupt for missing, strange or misshapen tensors and fields. All name file and
///          field.
std::unique_ptr<LanguageModel> load_pretrained(const std::string& folder, DType dtype = DType::f32);

}  // namespace weft::nn
