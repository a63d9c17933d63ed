#pragma once
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "blocks.hpp"
#include "collected.hpp"
#include "gpu.hpp"
#include "recent.hpp"
#include "weft/backend.hpp"

// Shared by the files of this backend: devices, queues, and errors in the contract's form.
namespace weft::cuda {

using backend::Outcome;
using gpu::Grid;

/// Whether a call must give the same bits each time, whatever is launched beside it.
inline bool wants_equal_bits(const backend::OpCall& c) { return c.determinism() > WEFT_DETERMINISM_ANY; }

class Chain;
struct Program;
struct Module;

/// Threads of a block, and blocks of a cluster.
struct BlockSize {
  BlockSize(unsigned t, unsigned c = 1) : threads(t), cluster(c) {}  // NOLINT: a number is a size
  unsigned threads, cluster;
  bool together = false;  ///< All blocks run at the same time, or the launch fails.
};

/// Threads of a block where a kernel leaves it to the backend.
inline constexpr unsigned kBlock = 256;

struct Device {
  Device(int ordinal, const gpu::Properties&);

  const int ordinal;
  const int architecture;       ///< 90: sm_90
  const std::string target;     ///< for the compiler of texts
  const bool dependent_launch;  ///< A kernel may start while the one before it drains.
  const bool clusters;          ///< Blocks may run as clusters.
  const bool chains;            ///< Chains (chain.hpp) are for it.
  const int multiprocessors;
  const uint64_t blocks_at_once;  ///< of kBlock threads
  Blocks blocks;
  std::atomic<bool> failed = false;             ///< It can't be used any more: `failure` says why.
  std::atomic<gpu::Context> context = nullptr;  ///< of threads whose current device it is

  std::mutex mutex{};  ///< Guards what follows.
  std::string failure{};
  std::set<Queue*> queues{};
  std::map<int, bool> peers{};  ///< whether the memory of another device can be used
  std::multimap<void*, bool>
      foreign{};  ///< handles that are no blocks: true for pinned memory, else an import
  std::deque<std::pair<std::string, std::shared_ptr<Program>>> recent{};  ///< texts by their cache key
  std::map<const void*, int> clusters_at_once{};                          ///< of kernels that asked
  std::map<const void*, size_t> shared_allowed{};  ///< bytes of a block, of kernels that asked
  std::set<Module*> modules{};                     ///< not released yet
};

/// What the host does for this backend.
const weft_host* host();

/// A stream. Points are events, kept until they are known to have been reached.
struct Queue {
  Queue(Device& d, gpu::Stream s, bool is_imported = false);
  ~Queue();
  Device& device;
  gpu::Stream stream;  ///< For whoever has called `settle`.
  bool imported = false;
  bool captured = false;  ///< What is launched is recorded, and does not run.
  /// Of a queue that is captured: what the steps before may write while a launch begins.
  const Bytes* written = nullptr;
  Chain* chain = nullptr;     ///< Of a queue that is captured: what may become one kernel.
  float* partials = nullptr;  ///< kPartials of them and the counters, of who made the queue
  int* counters() const { return reinterpret_cast<int*>(partials + kPartials); }
  void* staging = nullptr;  ///< kStaging bytes that the host writes and the device reads
  size_t staged = 0;        ///< of these, since the stream was last waited for
  Outcome kept{};           ///< an error that a copy met: the next synchronize's
  std::mutex collecting{};  ///< Guards what follows.
  Collections collected{};  ///< Work that waits for more of its kind.
  uint64_t settled = 0;     ///< how often such work was launched
  Recent recent{};          ///< what was launched last
  std::mutex mutex;         ///< Guards what follows, which any thread may ask for.
  struct Point {
    uint64_t number;
    gpu::Event event;
    uint64_t launches;  ///< there were before it
  };
  std::deque<Point> points{};
  std::vector<gpu::Event> spare{};
  uint64_t marked = 0, reached = 0, launches_reached = 0;
  /// Events with times, of the thread that uses the queue: to be read, and for use again.
  std::vector<gpu::Event> stamps{}, spare_stamps{};
};

/// Bytes that wait to be copied to the device, of pieces that are small: their caller need not wait.
inline constexpr size_t kStaging = 65536, kStagedPiece = 4096;

/// Writes to the device's memory, and waits for that.
Outcome write_now(void* to, const void* from, size_t bytes);
/// Memory for the `partials` of queues, one behind the other, with counters of 0.
Outcome allocate_partials(Device&, size_t queues, float** partials);

inline Device* device_of(weft_device d) { return reinterpret_cast<Device*>(d); }
inline Queue* queue_of(weft_queue q) { return reinterpret_cast<Queue*>(q); }
inline Queue& queue_of(const backend::Launch& l) { return *queue_of(l.raw()->queue); }

/// The result of a runtime call as text.
inline Outcome outcome(gpu::Error error, const char* what) {
  if (error == gpu::kSuccess) return Outcome::ok();
  gpu::get_last_error();  // clears an error that is not sticky
  const weft_code code = error == gpu::kOutOfMemory ? WEFT_OUT_OF_MEMORY : WEFT_DEVICE;
  return Outcome::fail(code, "{}: {} ({})", what, gpu::get_error_string(error), static_cast<int>(error));
}

#define WEFT_GPU_TRY(call) \
  if (auto tried = ::weft::cuda::outcome((call), #call); !tried.good()) return tried

/// "cuda:0"
std::string name_of(const Device&);
/// Why the device can't be used any more.
Outcome failure_of(Device&);
/// After an error: where no call to the device succeeds any more, it has failed, and the text names the
/// kernels that may be the reason.
Outcome judged(Device&, Outcome error);
/// Notes a launch, for the text of an error.
void note(Queue&, std::string_view kernel);
/// Whether each launch is waited for (WEFT_GPU_BLOCKING=1), so that an error names the kernel that made it.
bool blocking();
/// Ends each entry that launches: waits, where they are waited for.
Outcome launched(Queue&);
/// How long a wait may take, in seconds, by WEFT_GPU_TIMEOUT; 0: without limit. A device that takes longer
/// has failed: `overdue` says so.
double time_limit();
Outcome overdue(Device&);
/// Waits for what the queue holds.
Outcome wait_for_stream(Queue&);

/// Makes the device this thread's current one. Others may make another device current at any time, so the
/// driver is asked each time, which takes a fraction of the time that setting a device takes.
inline gpu::Error make_current(Device& d) {
  const gpu::Context current = gpu::current_context();
  if (current && current == d.context.load(std::memory_order_relaxed)) return gpu::kSuccess;
  const gpu::Error set = gpu::set_device(d.ordinal);
  if (set == gpu::kSuccess) d.context.store(gpu::current_context(), std::memory_order_relaxed);
  return set;
}

/// The body of an entry that uses the device.
template <class Body>
weft_code on_device(Device& d, weft_error* error, const Body& body) {
  return backend::guarded(error, [&]() -> Outcome {
    if (d.failed.load(std::memory_order_acquire)) [[unlikely]]
      return failure_of(d);
    WEFT_GPU_TRY(make_current(d));
    Outcome done = body();
    return done.code == WEFT_DEVICE ? judged(d, std::move(done)) : done;
  });
}

/// Launches what was collected. Comes before any other use of the stream: where that is a launch, `next` is
/// its name, which is noted.
Outcome settle(Queue&, std::string_view next = {});
/// The same for the owner of `collecting`; what becomes a part of the queue's chain waits there.
Outcome settle_locked(Queue&);
/// Launches the queue's chain, as far as it has come. Comes before any other launch.
Outcome launch_chain(Queue&);
/// Has work wait behind what waits, for the owner of `collecting`. Where too much waits, that is launched.
template <class C>
Outcome wait_last(Queue& queue, std::unique_ptr<C> fresh, C** waiting = nullptr) {
  if (queue.collected.full())
    if (auto settled = settle_locked(queue); !settled.good()) return settled;
  C& at = queue.collected.add(std::move(fresh));
  if (waiting) *waiting = &at;
  return Outcome::ok();
}
/// Whether work may wait in this queue: not where others use the stream, too.
inline bool may_wait(const Queue& q) { return !q.imported; }

/// Entries of weft_backend; weft/backend.h specifies them.
weft_code allocate(weft_device, uint64_t bytes, void** handle, weft_error*);
weft_code allocate_pinned(weft_device, uint64_t bytes, void** handle, void** address, weft_error*);
void free_buffer(weft_device, void* handle);
weft_code import_memory(weft_device, const DLTensor*, uint64_t bytes, void** handle, weft_error*);
uint64_t memory_free(weft_device);

weft_code mark(weft_queue, uint64_t* point, weft_error*);
weft_code stamp(weft_queue, weft_error*);
weft_code read_stamps(weft_queue, uint64_t* nanoseconds, uint32_t n, weft_error*);
weft_code wait(weft_queue, weft_queue other, uint64_t point, weft_error*);
weft_code await(weft_queue, uint64_t point, uint64_t nanoseconds, uint64_t* reached, weft_error*);
weft_code copy(weft_queue, const weft_copy*, weft_error*);
weft_code synchronize(weft_queue, weft_error*);
weft_code open_queue(weft_device, weft_queue*, weft_error*);
weft_code import_queue(weft_device, void* native, weft_queue*, weft_error*);
void close_queue(weft_queue);
weft_code make_sequence(weft_device, const weft_sequence_desc*, weft_sequence*, uint32_t* refused,
                        weft_error*);
weft_code run_sequence(weft_sequence, weft_queue, void* const* handles, uint32_t n, weft_error*);
void free_sequence(weft_sequence);

weft_code compile(weft_device, const weft_source*, weft_module*, weft_error*);
void release_module(weft_module);
weft_code dispatch(weft_queue, const weft_dispatch*, weft_error*);
void release_modules(Device&);

/// The copy with its bindings resolved.
Outcome enqueue_copy(const weft_copy&, gpu::Stream);

}  // namespace weft::cuda
