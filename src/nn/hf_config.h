#pragma once
#include <span>
#include <string>

#include "nn/hf_object.h"
#include "weft/models.h"

namespace weft::nn {

/// What a Hugging Face `config.json` describes.
struct HfConfig {
  std::string type;  ///< its model_type
  LanguageModelConfig model;
};
/// Raises what load_pretrained() says.
HfConfig read_hf_config(const std::string& path);
/// The fields of text generation, which older releases of transformers kept in config.json.
std::span<const Harmless> generation_fields();

}  // namespace weft::nn
