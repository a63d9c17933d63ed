#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

// Threads of a GPU on one CPU thread: a block's threads are fibers that take turns in an order drawn from a
// seed, and hand over where they wait for each other.
namespace weft::emulated {

struct Index {
  unsigned x = 0, y = 0, z = 0;
};
struct Size {
  unsigned x = 1, y = 1, z = 1;
};

/// Threads of a warp: 32, or 64 where the build says so.
#ifndef WEFT_WARP
#define WEFT_WARP 32
#endif
inline constexpr unsigned kWarp = WEFT_WARP;

/// Where the running thread is.
struct Place {
  Index thread, block;
  Size threads, blocks;
  unsigned lane = 0;  ///< within its warp
};
const Place& place();

/// Waits for all threads of the block that have not ended.
void sync_block();
/// Waits for all threads of the warp that have not ended.
void sync_warp();
/// Waits until so many threads of the block have come here with this number, below kMeetings.
inline constexpr int kMeetings = 16;
void sync_threads(int number, unsigned threads);
/// Lets others go on, in other blocks, too, where these run together.
void rest();
/// What each lane of the warp gives here, by lane: kSlot bytes apart. Valid until the warp's next but one
/// exchange.
inline constexpr size_t kSlot = 64;
const std::byte* exchange(const void* mine, size_t bytes);
/// Memory of the block whose size the launch says.
std::byte* dynamic_shared();

/// A kernel that is launched. What `begin` made of it goes with it.
struct Kernel {
  Size blocks, threads;
  size_t shared_bytes = 0;
  std::function<void()> thread;
  bool together = false;  ///< All blocks run at the same time: they may wait for each other.

  Kernel(Size b, Size t, size_t bytes, std::function<void()> f)
      : blocks(b), threads(t), shared_bytes(bytes), thread(std::move(f)) {}
  Kernel(const Kernel&) = delete;
  ~Kernel();
};

/// Runs the first block of a kernel until its threads wait for the kernels before, which have not run yet:
/// what it does too early goes wrong. Does nothing where a kernel has begun and is not run yet.
void begin(const Kernel&);
void wait_for_kernels_before();

/// Runs each block of a kernel, one at a time, or all by turns where they run together. The answer is why it
/// could not: threads that wait for each other in different places. Empty: it has.
std::string run(const Kernel&);

}  // namespace weft::emulated
