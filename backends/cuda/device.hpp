#pragma once
#include <cuda_runtime.h>

#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "collected.hpp"
#include "weft/backend.hpp"

// Shared by the files of this backend: devices, queues, and errors in the contract's form.
namespace weft::cuda {

using backend::Outcome;

struct Program;
struct Module;

/// Threads of a block where a kernel leaves it to the backend.
inline constexpr unsigned kBlock = 256;

struct Device {
  int ordinal = 0;
  int architecture = 0;           ///< 90: sm_90
  bool dependent_launch = false;  ///< A kernel may start while the one before it drains.
  uint64_t blocks_at_once = 1;    ///< of kBlock threads
  std::mutex mutex{};             ///< Guards what follows.
  std::deque<std::pair<std::string, std::shared_ptr<Program>>> recent{};  ///< texts by their cache key
  std::set<Module*> modules{};                                            ///< not released yet
};

/// What the host does for this backend.
const weft_host* host();

/// A stream. Points are events, kept until they are known to have been reached.
struct Queue {
  Queue(Device& d, cudaStream_t s, bool is_imported = false);
  ~Queue();
  Device& device;
  cudaStream_t stream;  ///< For whoever has called `settle`.
  bool imported = false;
  float* partials = nullptr;  ///< kPartials of them and the counters, of who made the queue
  int* counters() const { return reinterpret_cast<int*>(partials + kPartials); }
  std::mutex collecting{};                 ///< Guards what follows.
  std::unique_ptr<Collected> collected{};  ///< Work that waits for more of its kind.
  std::mutex mutex;                        ///< Guards what follows, which any thread may ask for.
  std::deque<std::pair<uint64_t, cudaEvent_t>> points{};
  std::vector<cudaEvent_t> spare{};
  uint64_t marked = 0, reached = 0;
};

inline Device* device_of(weft_device d) { return reinterpret_cast<Device*>(d); }
inline Queue* queue_of(weft_queue q) { return reinterpret_cast<Queue*>(q); }

/// The result of a runtime call as text.
inline Outcome outcome(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return Outcome::ok();
  cudaGetLastError();  // clears an error that is not sticky
  const weft_code code = error == cudaErrorMemoryAllocation ? WEFT_OUT_OF_MEMORY : WEFT_DEVICE;
  return Outcome::fail(code, "{}: {} ({})", what, cudaGetErrorString(error), static_cast<int>(error));
}

#define WEFT_CUDA_TRY(call) \
  if (auto tried = ::weft::cuda::outcome((call), #call); !tried.good()) return tried

inline Queue& queue_of(const backend::Launch& l) { return *queue_of(l.raw()->queue); }

/// Launches what was collected. Comes before any other use of the stream.
Outcome settle(Queue&);
/// The same for the owner of `collecting`.
Outcome settle_locked(Queue&);
/// Whether work may wait in this queue: not where others use the stream, too.
inline bool may_wait(const Queue& q) { return !q.imported; }

/// Entries of weft_backend; weft/backend.h specifies them.
weft_code mark(weft_queue, uint64_t* point, weft_error*);
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
Outcome enqueue_copy(const weft_copy&, cudaStream_t);

}  // namespace weft::cuda
