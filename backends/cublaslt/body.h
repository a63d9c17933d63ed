#pragma once
#include <optional>

#include "weft/backend.hpp"

// Bodies of calls that are one product and what is added to it.
namespace weft::cublaslt {

/// x weightᵀ + bias + onto, by the positions of the call's inputs.
struct LayerOnto {
  int64_t x = -1, weight = -1, bias = -1, onto = -1;  ///< bias: -1 where there is none
};
/// What a body computes, in its result's dtype or wider; none if it is anything else.
std::optional<LayerOnto> layer_onto(const backend::OpCall& call);

}  // namespace weft::cublaslt
