#pragma once
#include <string>

#include "weft/models.h"

namespace weft::nn {

/// What a Hugging Face `config.json` describes.
struct HfConfig {
  std::string type;  ///< its model_type
  LanguageModelConfig model;
};
/// Raises what load_pretrained() says.
HfConfig read_hf_config(const std::string& path);

}  // namespace weft::nn
