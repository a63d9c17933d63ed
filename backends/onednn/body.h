#pragma once
#include <optional>

#include "backends/onednn/primitive.h"

// Bodies of calls that are a product with an epilogue.
namespace weft::onednn {

/// epilogue(x weightᵀ + bias): which inputs of the call these are.
struct LinearBody {
  int64_t x = 0, weight = 0, bias = -1;  ///< -1: none
  int64_t m = 0, n = 0, k = 0;
  Epilogue epilogue = Epilogue::none;
};

/// What a body of f32 computes, or why it is something else. The activation has to be spelled as the op's own
/// decomposition spells it: then the body says the same as oneDNN's, to the last bit of each constant.
std::optional<LinearBody> linear_body(const backend::OpCall& call, std::string& why);

}  // namespace weft::onednn
