#pragma once
#include <cstdint>
#include <span>
#include <vector>

// In which order to contract many tensors, two at a time: labels and sizes only, no tensors.
namespace weft::ir {

/// A set of labels 0..63.
using LabelSet = uint64_t;

/// The product of all operands, summed over the labels that `result` does not have.
struct Contraction {
  std::vector<LabelSet> operands;
  LabelSet result = 0;
  std::vector<double> sizes;  ///< by label
};

/// Contracts two values into a new one. Operands are values 0 to n - 1, step i makes value n + i.
struct ContractionStep {
  size_t a, b;
};
using ContractionPath = std::vector<ContractionStep>;

/// The labels that the product of values with the labels `a` and `b` keeps: those of the result and of
/// `others`.
inline LabelSet contracted(LabelSet a, LabelSet b, LabelSet others, LabelSet result) {
  return (a | b) & (others | result);
}

enum class PathSearch : uint8_t {
  automatic,  ///< optimal up to 6 operands, connected up to 14, greedy beyond
  optimal,    ///< least flops of all orders; greedy beyond 14 operands
  connected,  ///< fewest products, with outer products only between parts that share no summed label; same
              ///< limit
  greedy,     ///< always the pair that frees most memory
};
ContractionPath find_path(const Contraction& c, PathSearch search = PathSearch::automatic);

/// What a path costs. A step visits the product of all sizes of its two values; that many multiplications,
/// and as many additions where a label that both have is summed.
struct PathCost {
  double flops = 0;
  double products = 0;  ///< multiplications alone, labels that only one operand has being summed before
};
PathCost cost_of(const Contraction& c, const ContractionPath& path);

}  // namespace weft::ir
