#pragma once
#include "products.hpp"

// One kernel for all steps of a chain (steps.hpp). Its blocks, one a multiprocessor, run at the same
// time: they wait for each other.
namespace weft::cuda::chains {

/// Dynamic shared memory of a block.
struct ChainMemory {
  char ring[kChunks * kChunkBytes];
  Words x[kMostChainedK / 8];  // or that of attention
  SumsOfGroups sums;
  Words steps[kStepsAtHand][kStepBytes / 16];
  BlockRows rows[kStepsAtHand];
  Barrier filled[kChunks], used[kChunks], described[kStepsAtHand], ended[kStepsAtHand];
};
static_assert(sizeof(QueryMemory<16, 2>) <= sizeof(ChainMemory::x));
static_assert(sizeof(ChainMemory) <= 227 * 1024 - 1024);

/// The half of exchange memory that the next launch takes becomes empty.
__device__ inline void empty_other_half(const ChainTables& tables, unsigned launch) {
  auto* const other = reinterpret_cast<Words*>(tables.exchange + (launch % 2 ? 0 : tables.half));
  for (int i = static_cast<int>(blockIdx.x * kComputing + threadIdx.x); i < tables.half / 16;
       i += static_cast<int>(gridDim.x) * kComputing)
    other[i] = {~0u, ~0u, ~0u, ~0u};
}

/// Results that outlive the chain come to their places.
__device__ inline void copy_results(const ChainTables& tables, const Exchange& exchange) {
  for (int c = 0; c < tables.n_copies; ++c) {
    const ChainedCopy& copy = tables.copies[c];
    const int size = copy.wide ? 4 : 2, n = copy.bytes / size;
    const Source from{nullptr, copy.place};
    const Target to{copy.to, -1};
    const Format format = copy.wide ? Format::f32 : Format::bf16;
    for (int i = static_cast<int>(blockIdx.x * kComputing + threadIdx.x); i < n;
         i += static_cast<int>(gridDim.x) * kComputing)
      exchange.put(to, format, i, exchange.take_one(from, format, i));
  }
}

/// What the computing warps do.
__device__ inline void compute_steps(ChainTables* at, const ChainTables& tables, ChainMemory& memory,
                                     const Ring& ring, const Descriptions& at_hand, unsigned launch) {
  const Exchange exchange{tables.exchange + (launch % 2 ? tables.half : 0)};
  empty_other_half(tables, launch);
  Multiplying multiplying(ring, exchange, memory.x, memory.sums);
  for (int i = 0; i < tables.n_steps; ++i) {
    at_hand.wait(i);
    const ChainedStep& step = at_hand.step(i);
    const BlockRows& own = at_hand.rows[i % kStepsAtHand];
    if (step.kind == ChainedStep::products)
      multiplying.run(step.item, own);
    else if (step.query.lanes == 8)
      multiplying.place = attend<8>(step.query, exchange, memory.x, own, ring, multiplying.place);
    else
      multiplying.place = attend<16>(step.query, exchange, memory.x, own, ring, multiplying.place);
    at_hand.end(i);
  }
  copy_results(tables, exchange);
  sync_computing();
  if (threadIdx.x == 0 && atomicAdd(&at->blocks_ended, 1) == static_cast<int>(gridDim.x) - 1)
    at->blocks_ended = 0, at->launches = launch + 1;
}

static __global__ void __launch_bounds__(kChainThreads, 1) run_chain(ChainTables* at) {
  auto& memory = *dynamic_shared<ChainMemory>();
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < kChunks) memory.filled[thread].init(1), memory.used[thread].init(kChainWarps);
  if (thread < kStepsAtHand) memory.described[thread].init(1), memory.ended[thread].init(kChainWarps);
  show_barriers();
  sync_block();
  wait_for_kernels_before();
  const ChainTables tables = *at;
  const Ring ring{memory.ring, memory.filled, memory.used};
  const Descriptions at_hand{memory.steps, memory.rows, memory.described, memory.ended};
  if (thread < kComputing)
    compute_steps(at, tables, memory, ring, at_hand, tables.launches);
  else
    Copying(ring, at_hand, tables).run();
}

}  // namespace weft::cuda::chains
