#pragma once
#include <mutex>

#include "collected.hpp"
#include "kernel.hpp"

// Small pieces of work, such as an optimizer's steps of all parameters, wait in their queue until it is asked
// for anything else. Those of one kind are launched together, as far as they don't need each other, or what
// is launched between them.
namespace weft::cuda {

/// Elements of a block. Work whose tensors are small wants fewer: `kElements`.
inline constexpr int kElementsOfBlock = 4096;
template <class Work>
constexpr int elements_of_block() {
  if constexpr (requires { Work::kElements; })
    return Work::kElements;
  else
    return kElementsOfBlock;
}
/// Pieces of a launch: a kernel's arguments take at most 4 KB. Work may want fewer: `kMost`.
template <class Work>
constexpr int most_pieces() {
  if constexpr (requires { Work::kMost; })
    return Work::kMost;
  else
    return 48;
}

/// One at least: a piece without elements may have a result.
inline int64_t blocks_of(int64_t n, int elements = kElementsOfBlock) {
  return n == 0 ? 1 : (n + elements - 1) / elements;
}

/// The pieces of a launch: Work has `Piece`, what one piece is given; `Common`, what all of them are given;
/// `run(piece, common, begin, end)` for the threads of a block, and perhaps `end(pieces, i)` for those of the
/// last block of a piece that ends. Common may `agree` with another that is not equal, and `join` it.
template <class Work>
struct Pieces {
  static constexpr int kMost = most_pieces<Work>(), kElements = elements_of_block<Work>();
  typename Work::Piece all[kMost];
  int first_blocks[kMost + 1];  // of each piece, and of one behind the last
  int n;
  int* counters;  // of the queue
  typename Work::Common common;
};

/// Whether all of these blocks have come here, and this one as the last: it sees what the others wrote.
__device__ inline bool is_last_block(int* counter, int blocks) {
  __shared__ bool is_last;
  fence_device();
  sync_block();
  if (threadIdx.x == 0) {
    is_last = atomicAdd(counter, 1) == blocks - 1;
    if (is_last) *counter = 0;
  }
  sync_block();
  fence_device();
  return is_last;
}

template <class Work>
__global__ void __launch_bounds__(256) run_pieces(const __grid_constant__ Pieces<Work> pieces) {
  let_next_kernel_start();
  wait_for_kernels_before();
  const int block = static_cast<int>(blockIdx.x);
  int i = 0;
  while (pieces.first_blocks[i + 1] <= block) ++i;
  constexpr int kElements = Pieces<Work>::kElements;
  const int64_t begin = int64_t{block - pieces.first_blocks[i]} * kElements, size = pieces.all[i].n;
  Work::run(pieces.all[i], pieces.common, begin, begin + kElements < size ? begin + kElements : size);
  if constexpr (requires { Work::end(pieces, i); })
    if (is_last_block(pieces.counters + i, pieces.first_blocks[i + 1] - pieces.first_blocks[i]))
      Work::end(pieces, i);
}

template <class Work>
class CollectedOf : public Collected {
 public:
  explicit CollectedOf(const typename Work::Common& common) {
    pieces_.n = 0, pieces_.first_blocks[0] = 0, pieces_.common = common;
  }
  bool agrees(const typename Work::Common& common) const {
    if constexpr (requires { common.agrees(common); })
      return pieces_.common.agrees(common);
    else
      return pieces_.common == common;
  }
  /// For pieces that this one agrees with.
  void join(const typename Work::Common& common) {
    if constexpr (requires { pieces_.common.join(common); }) pieces_.common.join(common);
  }
  bool takes(const typename Work::Common& common, int64_t n) const {
    return pieces_.n < Pieces<Work>::kMost && agrees(common) &&
           pieces_.first_blocks[pieces_.n] + blocks_of(n, Pieces<Work>::kElements) <= kPartials;
  }
  void add(const typename Work::Piece& piece, std::span<const Range> reads, std::span<const Range> writes) {
    pieces_.all[pieces_.n] = piece;
    pieces_.first_blocks[pieces_.n + 1] =
        pieces_.first_blocks[pieces_.n] + static_cast<int>(blocks_of(piece.n, Pieces<Work>::kElements));
    ++pieces_.n;
    uses(reads, writes);
  }
  /// The first piece of which `is` says so, or null. It may be changed, if `uses` hears of it.
  template <class F>
  typename Work::Piece* find(F is) {
    const auto end = pieces_.all + pieces_.n, at = std::find_if(pieces_.all, end, is);
    return at == end ? nullptr : at;
  }
  std::span<const typename Work::Piece> pieces() const {
    return {pieces_.all, static_cast<size_t>(pieces_.n)};
  }
  Outcome start(Queue& queue) override {
    pieces_.counters = queue.counters();
    const auto blocks = static_cast<unsigned>(pieces_.first_blocks[pieces_.n]);
    return start_on(queue, {blocks}, 256, 0, run_pieces<Work>, pieces_);
  }

 private:
  Pieces<Work> pieces_;
};

/// Adds a piece to those that wait.
template <class Work>
Outcome collect(const backend::Launch& l, const typename Work::Common& common,
                const typename Work::Piece& piece, std::span<const Range> reads,
                std::span<const Range> writes) {
  Queue& queue = queue_of(l);
  const std::lock_guard lock(queue.collecting);
  using All = CollectedOf<Work>;
  auto* open = queue.collected.find<All>(reads, writes, [&](const All& all) {
    return all.takes(common, piece.n) && !all.depends(reads, writes);
  });
  if (!open)
    if (auto told = wait_last(queue, std::make_unique<All>(common), &open); !told.good()) return told;
  open->join(common);
  open->add(piece, reads, writes);
  return may_wait(queue) ? Outcome::ok() : settle_locked(queue);
}

}  // namespace weft::cuda
