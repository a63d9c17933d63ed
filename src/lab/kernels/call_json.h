#pragma once
#include <nlohmann/json_fwd.hpp>

#include "conformance/seam/rig.h"

// A call as JSON: how the lab tells the process of a kernel, and a result file, what is computed.
namespace weft::lab {

/// Without the operands' numbers. Raises for an attribute that is bytes or no finite number.
nlohmann::json to_json(const conformance::Ask& ask);
/// Raises where it is none.
conformance::Ask ask_from(const nlohmann::json& json);

/// "softmax f32[512, 512] axis=-1".
std::string text(const conformance::Ask& ask);

}  // namespace weft::lab
