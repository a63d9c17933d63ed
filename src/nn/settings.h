#pragma once
#include <nlohmann/json_fwd.hpp>

#include "weft/checkpoint.h"

namespace weft::nn {

/// Every setting by name, as stored in a checkpoint; the names are those of the command line's options.
nlohmann::json settings_json(const TrainSettings& settings);

/// The reverse; messages name `where`. Errors: corrupt, with the field, if one is missing or of another kind.
Status read_settings(const std::string& where, const nlohmann::json& root, TrainSettings& to);

/// A field of a JSON object that is wrong.
Status bad_field(const std::string& where, const std::string& name, const std::string& why);

}  // namespace weft::nn
