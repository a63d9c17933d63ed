#include "threads.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "switch.hpp"

namespace weft::emulated {
namespace {

constexpr size_t kStack = size_t{256} << 10;

/// A meeting of threads: all wait until the last one has come.
struct Meeting {
  unsigned wanted = 0, here = 0, held = 0;  // `held`: how many there have been
};

struct Warp {
  Meeting meeting;
  alignas(16) std::byte slots[2][kWarp][kSlot];
};

struct Fiber {
  Context context;
  std::unique_ptr<std::byte[]> stack;
  Place place;
  Meeting* waits_for = nullptr;
  unsigned held = 0;  // of that meeting, when it began to wait
  unsigned exchanges =
      0;  // of its warp; the slots alternate, so that nobody overwrites what others still read
  Warp* warp = nullptr;
  bool ended = false;

  bool can_run() const { return !ended && (!waits_for || waits_for->held != held); }
};

struct Block {
  std::vector<Fiber> fibers;
  std::vector<Warp> warps;
  Meeting meeting;
  std::vector<std::byte> shared;
  Context scheduler;
  Fiber* running = nullptr;
  const std::function<void()>* thread = nullptr;
  uint64_t random = 0x9E3779B97F4A7C15u;
  unsigned ahead = 0;  // the warp whose turn it is
};
Block& block() {
  static Block& all = *new Block;
  return all;
}

void leave(Meeting& m) {
  if (--m.wanted > 0 && m.here == m.wanted) m.here = 0, ++m.held;
}

void wait_at(Meeting& m) {
  if (++m.here == m.wanted) {
    m.here = 0, ++m.held;
    return;
  }
  Fiber& me = *block().running;
  me.waits_for = &m, me.held = m.held;
  me.context.leave_for(block().scheduler);
  me.waits_for = nullptr;
}

void enter() {
  Block& b = block();
  (*b.thread)();
  b.running->ended = true;
  leave(b.running->warp->meeting);
  leave(b.meeting);
  b.running->context.leave_for(b.scheduler);
}

void begin(Fiber& f, Warp& warp, const Place& place) {
  if (!f.stack) f.stack = std::make_unique_for_overwrite<std::byte[]>(kStack);
  f.place = place, f.warp = &warp, f.waits_for = nullptr, f.exchanges = 0, f.ended = false;
  f.context.begin(f.stack.get(), kStack, enter);
}

void prepare(Block& b, Size blocks, Size threads, Index index) {
  const unsigned n = threads.x * threads.y * threads.z, n_warps = (n + kWarp - 1) / kWarp;
  if (b.fibers.size() < n) b.fibers.resize(n);
  b.warps.resize(n_warps);
  b.meeting = {n};
  for (unsigned w = 0; w < n_warps; ++w) b.warps[w].meeting = {std::min(kWarp, n - w * kWarp)};
  for (unsigned i = 0; i < n; ++i) {
    const Index thread{i % threads.x, i / threads.x % threads.y, i / threads.x / threads.y};
    begin(b.fibers[i], b.warps[i / kWarp], {thread, index, threads, blocks, i % kWarp});
  }
  std::memset(b.shared.data(), 0xff, b.shared.size());  // a NaN where nobody wrote
}

unsigned drawn(Block& b, size_t below) {
  b.random = b.random * 6364136223846793005u + 1442695040888963407u;
  return static_cast<unsigned>((b.random >> 33) % below);
}

/// A thread of these that can run, beginning at a drawn one; null: none.
Fiber* any_of(Block& b, std::span<Fiber> fibers) {
  const unsigned first = drawn(b, fibers.size());
  for (size_t i = 0; i < fibers.size(); ++i)
    if (Fiber& f = fibers[(first + i) % fibers.size()]; f.can_run()) return &f;
  return nullptr;
}

/// The next of n threads that can run; null: none. One warp goes ahead as far as it can, mostly, so that it
/// overwrites what others still read if a barrier is missing.
Fiber* next(Block& b, unsigned n) {
  const std::span all(b.fibers.data(), n);
  const unsigned first = b.ahead * kWarp;
  Fiber* const f =
      first < n && drawn(b, 64) > 0 ? any_of(b, all.subspan(first, std::min(kWarp, n - first))) : nullptr;
  if (f) return f;
  Fiber* const other = any_of(b, all);
  if (other) b.ahead = static_cast<unsigned>(other - all.data()) / kWarp;
  return other;
}

}  // namespace

const Place& place() { return block().running->place; }
void sync_block() { wait_at(block().meeting); }
void sync_warp() { wait_at(block().running->warp->meeting); }
std::byte* dynamic_shared() { return block().shared.data(); }

const std::byte* exchange(const void* mine, size_t bytes) {
  Fiber& me = *block().running;
  auto& slots = me.warp->slots[me.exchanges++ % 2];
  std::memcpy(slots[me.place.lane], mine, bytes);
  wait_at(me.warp->meeting);
  return slots[0];
}

std::string run(Size blocks, Size threads, size_t shared_bytes, const std::function<void()>& thread) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  Block& b = block();
  b.thread = &thread;
  b.shared.resize(shared_bytes);
  const unsigned n = threads.x * threads.y * threads.z;
  for (unsigned i = 0; i < blocks.x * blocks.y * blocks.z; ++i) {
    prepare(b, blocks, threads, {i % blocks.x, i / blocks.x % blocks.y, i / blocks.x / blocks.y});
    while (Fiber* f = next(b, n)) {
      b.running = f;
      b.scheduler.leave_for(f->context);
    }
    for (unsigned k = 0; k < n; ++k)
      if (!b.fibers[k].ended) {
        const Index at = b.fibers[k].place.thread;
        return "thread (" + std::to_string(at.x) + ", " + std::to_string(at.y) + ", " + std::to_string(at.z) +
               ") waits for threads that wait elsewhere, or have ended";
      }
  }
  return {};
}

}  // namespace weft::emulated
