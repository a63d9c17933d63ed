#pragma once
#include <array>

#include "../chained_attention.hpp"
#include "../skinny_kernel.hpp"

// The steps of a chain, as its kernel gets them. What a step finds is needed by the next ones, in other
// blocks. It comes to them by exchange memory: each element there says by itself whether it has been written,
// since one that has not is a NaN that no computation gives. So a step waits for just what it reads, and no
// fence orders that and a flag behind it.
namespace weft::cuda::chains {

constexpr int kChainWarps = 8;                         // that compute
constexpr int kChainThreads = 32 * (kChainWarps + 1);  // one more warp copies weights
constexpr int kWarpColumns = 128;                      // of weights that a warp multiplies at a time
constexpr int kChunkRows = 8, kChunkColumns = kWarpColumns * kChainWarps;  // that are copied together
constexpr int kChunkRowBytes = 2 * kChunkColumns;
constexpr int kChunkPitch = kChunkRowBytes + 64;  // so that two rows' pieces lie in different banks
constexpr int kChunkBytes = kChunkRows * kChunkPitch;
constexpr int kKeysBytes = 8192;      // of keys in a chunk, and as many of values behind them
constexpr int kGroupRows = 32;        // rows of weights whose sums are joined together
constexpr int kMostChainedK = 12288;  // elements of x
constexpr int kStepBytes = 1024;      // of a step's description
constexpr int kStepsAtHand = 4;       // in shared memory

/// Elements to read: in exchange memory at `place`, or where they were before the chain.
struct Source {
  const void* plain;
  int place;  ///< in bytes, or -1
};
/// Where elements are written: `plain` or exchange memory, or nowhere.
struct Target {
  void* plain;
  int place;
};

/// What an operation takes beside the value at hand, or instead of it.
enum class Other : uint8_t {
  first_product,
  second_product,
  operand,
  number = operand + kMostOperands,
  kept,
  itself
};

/// The steps of an element, one after the other: each makes the value at hand of it and one other.
struct Operation {
  StepCode code;  ///< `convert`: the value at hand becomes the other
  Other other;
  Format rounded_to;
  bool reversed : 1;   ///< The other is the first operand.
  bool keeps : 1;      ///< The value is needed later.
  uint8_t result : 2;  ///< Its number and 1, where the value is one.
  float number;
};
static_assert(sizeof(Operation) == 8);

/// Products of one row with the weights of an item.
struct ChainedItem {
  Source x;
  const bf16* norm_weight;
  Target normed_row;  ///< x normed, for whoever reads that
  Source operands[kMostOperands];
  Target results[kMostResults];
  Operation operations[kMostSteps];
  Format operand_formats[kMostOperands], result_formats[kMostResults], product_formats[kMostProducts];
  uint8_t n_operands, n_operations;
  enum Ending : uint8_t { product, sum, operations_of_it } ending;  ///< `sum`: of the product and an operand
  bool normed;
  int k;
  float per_column, epsilon;  ///< 1 / k
};

/// Attention: a block serves a unit of heads, and a split of its keys (BlockRows).
struct ChainedQuery {
  Source q, k, v;  ///< rows before they are turned
  Target y, q_normed, q_turned, k_normed, k_turned;
  int partial;  ///< place of what blocks found
  int lanes;    ///< that have a row
  bool turned;  ///< q is fresh
  queries::Sizes sizes;
  queries::Fresh<bf16> fresh;
};

struct alignas(16) ChainedStep {
  enum Kind : int { products, attention } kind;
  union {
    ChainedItem item;
    ChainedQuery query;
  };
  ChainedStep() : kind(products), item{} {}
};
static_assert(sizeof(ChainedStep) <= kStepBytes);

/// What a block has of a step, which description number `step` tells: rows first, first + 1, ... of weights,
/// or of attention a split of the keys of a unit of heads.
struct alignas(16) BlockRows {
  const char* from;   ///< the first row; the unit's keys
  int64_t to_second;  ///< bytes to the same row of the second product; to the values
  int step, first, rows, products;
  int row_bytes, writes_normed;
  int attends, split;  ///< `first` is the unit
};
static_assert(sizeof(BlockRows) == 48);

/// A result of the chain that is copied from exchange memory to where it belongs, at the end.
struct alignas(16) ChainedCopy {
  void* to;
  int place, bytes;
  int wide;  ///< elements have 4 bytes, not 2
};

/// What a launch finds in the device's memory.
struct ChainTables {
  const ChainedStep* steps;  ///< kStepBytes apart
  const BlockRows* rows;     ///< [steps][blocks]
  const ChainedCopy* copies;
  char* exchange;  ///< two halves of `half` bytes, which launches take by turns
  int half, n_steps, n_copies;
  unsigned launches;
  int blocks_ended;
};

}  // namespace weft::cuda::chains
