#pragma once
#include <span>
#include <string>

#include "nn/hf_object.h"
#include "weft/models.h"

namespace weft::nn {

/// The model described by a Hugging Face `config.json`.
struct HfConfig {
  std::string type;  ///< its model_type
  LanguageModelConfig model;
};
/// Raises as documented at load_pretrained().
HfConfig read_hf_config(const std::string& path);
/// The fields of text generation, which older releases of transformers kept in config.json.
std::span<const Harmless> generation_fields();

}  // namespace weft::nn
