#pragma once
#include <optional>

#include "backends/onednn/primitive.h"

// Bodies of calls that are a product with an epilogue.
namespace weft::onednn {

/// epilogue(x weightᵀ + bias), by the positions of the call's inputs.
struct LinearBody {
  int64_t x = 0, weight = 0, bias = -1;  ///< -1: none
  int64_t m = 0, n = 0, k = 0;
  Epilogue epilogue = Epilogue::none;
};

/// What a body of f32 computes, or why it is no such layer. The activation must be spelled like the op's own
/// decomposition: then oneDNN computes the same function, to the last bit of each constant.
std::optional<LinearBody> linear_body(const backend::OpCall& call, std::string& why);

}  // namespace weft::onednn
