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
  bool ended = false, rests = false;

  bool can_run() const { return !ended && !rests && (!waits_for || waits_for->held != held); }
};

struct Block {
  std::vector<Fiber> fibers;
  std::vector<Warp> warps;
  Meeting meeting, kernels_before, of_some[kMeetings];
  std::vector<std::byte> shared;
  Context scheduler;
  Fiber* running = nullptr;
  const std::function<void()>* thread = nullptr;
  uint64_t random = 0x9E3779B97F4A7C15u;
  unsigned ahead = 0;  // the warp whose turn it is
};
/// The block that runs, and the one that has begun and waits for the kernels before its own.
struct Blocks {
  Block running, waiting;
  Block* current = &running;
  const Kernel* begun = nullptr;
  std::mutex mutex;
};
Blocks& state() {
  static Blocks& all = *new Blocks;
  return all;
}
Block& block() { return *state().current; }

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
  f.place = place, f.warp = &warp, f.waits_for = nullptr, f.exchanges = 0, f.ended = f.rests = false;
  f.context.begin(f.stack.get(), kStack, enter);
}

void prepare(Block& b, const Kernel& kernel, unsigned number) {
  const Size blocks = kernel.blocks, threads = kernel.threads;
  const Index index{number % blocks.x, number / blocks.x % blocks.y, number / blocks.x / blocks.y};
  const unsigned n = threads.x * threads.y * threads.z, n_warps = (n + kWarp - 1) / kWarp;
  b.thread = &kernel.thread;
  b.shared.resize(kernel.shared_bytes);
  if (b.fibers.size() < n) b.fibers.resize(n);
  b.warps.resize(n_warps);
  b.meeting = {n}, b.kernels_before = {};
  std::ranges::fill(b.of_some, Meeting{});
  for (unsigned w = 0; w < n_warps; ++w) b.warps[w].meeting = {std::min(kWarp, n - w * kWarp)};
  for (unsigned i = 0; i < n; ++i) {
    const Index thread{i % threads.x, i / threads.x % threads.y, i / threads.x / threads.y};
    begin(b.fibers[i], b.warps[i / kWarp], {thread, index, threads, blocks, i % kWarp});
  }
  std::memset(b.shared.data(), 0xff, b.shared.size());  // a NaN where nobody wrote
}

unsigned drawn(Block& b, unsigned below) {
  b.random = b.random * 6364136223846793005u + 1442695040888963407u;
  return static_cast<unsigned>(b.random >> 33) % below;
}

/// A thread of these that can run, beginning at a drawn one; null: none.
Fiber* any_of(Block& b, std::span<Fiber> fibers) {
  const unsigned first = drawn(b, static_cast<unsigned>(fibers.size()));
  for (Fiber& f : fibers.subspan(first))
    if (f.can_run()) return &f;
  for (Fiber& f : fibers.first(first))
    if (f.can_run()) return &f;
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

unsigned threads_of(const Kernel& k) { return k.threads.x * k.threads.y * k.threads.z; }

/// Runs the threads of the block until none of them can.
void go_on(Block& b, unsigned n) {
  while (Fiber* f = next(b, n)) {
    b.running = f;
    b.scheduler.leave_for(f->context);
  }
}
/// Runs blocks by turns: one goes on until all its threads wait or rest.
std::string run_together(const Kernel& kernel, Blocks& all) {
  constexpr int kMostTurns = 1 << 20;
  const unsigned n = threads_of(kernel);
  std::vector<Block> blocks(kernel.blocks.x * kernel.blocks.y * kernel.blocks.z);
  for (unsigned i = 0; i < blocks.size(); ++i) prepare(blocks[i], kernel, i), blocks[i].random += i;
  bool ended = false;
  for (int turn = 0; turn < kMostTurns && !ended; ++turn) {
    ended = true;
    for (Block& b : blocks) {
      for (unsigned i = 0; i < n; ++i) b.fibers[i].rests = false;
      all.current = &b;
      go_on(b, n);
      ended = ended && std::ranges::all_of(std::span(b.fibers.data(), n), &Fiber::ended);
    }
  }
  all.current = &all.running;
  return ended ? "" : "blocks that run together wait for each other";
}

/// Why the block has not ended; empty: it has.
std::string unended(const Block& b, unsigned n) {
  for (unsigned i = 0; i < n; ++i)
    if (!b.fibers[i].ended) {
      const Index at = b.fibers[i].place.thread;
      return "thread (" + std::to_string(at.x) + ", " + std::to_string(at.y) + ", " + std::to_string(at.z) +
             ") waits for threads that wait elsewhere, or have ended";
    }
  return {};
}

/// Ends the block that has begun, whose kernel it is now the turn of.
std::string end_begun(const Kernel& kernel) {
  Blocks& all = state();
  all.begun = nullptr, all.current = &all.waiting;
  Block& b = all.waiting;
  b.kernels_before.wanted = 0, ++b.kernels_before.held;
  go_on(b, threads_of(kernel));
  all.current = &all.running;
  return unended(b, threads_of(kernel));
}

}  // namespace

const Place& place() { return block().running->place; }
void sync_block() { wait_at(block().meeting); }
void sync_warp() { wait_at(block().running->warp->meeting); }
void sync_threads(int number, unsigned threads) {
  Meeting& m = block().of_some[number];
  m.wanted = threads;
  wait_at(m);
}
void rest() {
  Fiber& me = *block().running;
  me.rests = true;
  me.context.leave_for(block().scheduler);
}
std::byte* dynamic_shared() { return block().shared.data(); }
void wait_for_kernels_before() {
  if (block().kernels_before.wanted > 0) wait_at(block().kernels_before);
}

const std::byte* exchange(const void* mine, size_t bytes) {
  Fiber& me = *block().running;
  auto& slots = me.warp->slots[me.exchanges++ % 2];
  std::memcpy(slots[me.place.lane], mine, bytes);
  wait_at(me.warp->meeting);
  return slots[0];
}

Kernel::~Kernel() {
  const std::lock_guard lock(state().mutex);
  if (state().begun == this) state().begun = nullptr;
}

void begin(const Kernel& kernel) {
  Blocks& all = state();
  const std::lock_guard lock(all.mutex);
  if (all.begun || kernel.together || kernel.blocks.x * kernel.blocks.y * kernel.blocks.z == 0) return;
  all.begun = &kernel, all.current = &all.waiting;
  prepare(all.waiting, kernel, 0);
  all.waiting.kernels_before.wanted = threads_of(kernel) + 1;  // they never are so many
  go_on(all.waiting, threads_of(kernel));
  all.current = &all.running;
}

std::string run(const Kernel& kernel) {
  Blocks& all = state();
  const std::lock_guard lock(all.mutex);
  unsigned i = 0;
  if (all.begun == &kernel) {
    if (std::string why = end_begun(kernel); !why.empty()) return why;
    ++i;
  }
  if (kernel.together) return run_together(kernel, all);
  Block& b = all.running;
  for (; i < kernel.blocks.x * kernel.blocks.y * kernel.blocks.z; ++i) {
    prepare(b, kernel, i);
    go_on(b, threads_of(kernel));
    if (std::string why = unended(b, threads_of(kernel)); !why.empty()) return why;
  }
  return {};
}

}  // namespace weft::emulated
