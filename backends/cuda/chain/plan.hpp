#pragma once
#include <optional>
#include <span>
#include <vector>

#include "../chain.hpp"
#include "steps.hpp"

namespace weft::cuda::chains {

/// The steps of an item's elements; none where its kind is not for chains.
std::optional<std::vector<Operation>> operations_of(const skinny::Item&);

/// A step as it was added.
struct RawStep {
  bool is_attention = false;
  skinny::Items products{};
  ChainedAttention attention{};
  Chain::Alone alone;
};

/// What a kernel is told. It runs the first `n` of the steps; those behind them need what it leaves in
/// memory.
struct ChainPlan {
  size_t n = 0;
  std::vector<ChainedStep> steps;
  std::vector<BlockRows> rows;
  std::vector<ChainedCopy> copies;
  int half = 0;  ///< bytes of exchange memory
};
ChainPlan plan_chain(std::span<const RawStep>, int blocks);

}  // namespace weft::cuda::chains
