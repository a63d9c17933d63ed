#include "queue.hpp"
#include "sequence.hpp"

namespace weft::kernels {
std::vector<backend::KernelRecord> shared();  // of backends/template
}

// The strictest small device that the contract allows; a host that works here works anywhere. Handles fault
// when read, queues run late, errors are reported at synchronize, buffers are small, regions are refused.
namespace {

using far::Memory;
using far::Outcome;
using far::Queue;
using namespace weft::backend;

struct Device {
  Memory memory;
  std::mutex mutex;
  Outcome error;  // of calls without a queue; reported at the next synchronize of any queue
};

struct DeviceQueue {
  DeviceQueue(Device& d, uint32_t seed) : device(d), queue(d.memory, seed) {}
  Device& device;
  Queue queue;
  std::vector<std::shared_ptr<std::chrono::steady_clock::time_point>> stamps;
};

Device* device_of(weft_device d) { return reinterpret_cast<Device*>(d); }
DeviceQueue* queue_of(weft_queue q) { return reinterpret_cast<DeviceQueue*>(q); }

constexpr uint32_t kOffsetAlignment = 64;

// ---- launch
// -----------------------------------------------------------------------------------------------------

bool overlap(const weft_tensor* a, const weft_tensor* b) {
  const int64_t na = TensorView(a).bytes(), nb = TensorView(b).bytes();
  const auto begin = [](const weft_tensor* t) { return static_cast<char*>(t->dl.data) + t->dl.byte_offset; };
  return na > 0 && nb > 0 && begin(a) < begin(b) + nb && begin(b) < begin(a) + na;
}

/// The operands in the device's form, or the host's mistake. Adds their buffers to `holds`.
Outcome check_operands(Memory& memory, const weft_launch* l, std::vector<void*>& holds) {
  const OpCall call(l->plan->call);
  auto check = [&](const weft_tensor* t, const char* what, int64_t i) {
    if (t == nullptr || TensorView(t).bytes() == 0) return Outcome::ok();
    if (t->dl.byte_offset % kOffsetAlignment != 0)
      return Outcome::fail(WEFT_INVALID_ARGUMENT, "{} {} begins at byte {}, not at a multiple of {}", what, i,
                           t->dl.byte_offset, kOffsetAlignment);
    auto outcome = memory.check(t->dl.data, t->dl.byte_offset, static_cast<uint64_t>(TensorView(t).bytes()));
    if (!outcome.good()) return Outcome::fail(outcome.code, "{} {}: {}", what, i, outcome.text);
    holds.push_back(t->dl.data);
    return outcome;
  };
  for (int64_t i = 0; i < call.n_inputs(); ++i)
    if (auto outcome = check(l->inputs[i], "input", i); !outcome.good()) return outcome;
  for (int64_t k = 0; k < call.n_outputs(); ++k) {
    if (auto outcome = check(l->outputs[k], "output", k); !outcome.good()) return outcome;
    for (int64_t i = 0; i < call.n_inputs() && !(call.updates() >> k & 1); ++i)
      if (l->inputs[i] != nullptr && overlap(l->inputs[i], l->outputs[k]))
        return Outcome::fail(WEFT_INVALID_ARGUMENT,
                             "output {} overlaps input {}, and the call does not update it", k, i);
  }
  return check(read(l, &weft_launch::workspace), "workspace", 0);
}

Outcome launch_task(Memory& memory, const weft_launch* l, far::Task& task) {
  task.name = std::string("kernel ") + l->plan->kernel->id;
  if (auto outcome = check_operands(memory, l, task.holds); !outcome.good())
    return {outcome.code, std::string(l->plan->kernel->id) + ": " + outcome.text};
  const auto copy =
      std::make_shared<LaunchCopy>(l, [&](const weft_tensor& t) { return memory.real(t.dl.data); });
  task.run = [copy] { return KernelTable::run(copy->get()); };
  return Outcome::ok();
}

weft_code launch(const weft_launch* l, weft_error* error) {
  return guarded(error, [&]() -> Outcome {
    Queue& queue = queue_of(l->queue)->queue;
    far::Task task;
    if (auto outcome = launch_task(queue.memory(), l, task); !outcome.good()) return outcome;
    queue.push(std::move(task));
    return Outcome::ok();
  });
}

KernelTable& table() {
  static KernelTable kernels("far", {weft::kernels::shared()}, launch, WEFT_KERNEL_RECORDABLE);
  return kernels;
}

// ---- the table
// --------------------------------------------------------------------------------------------------

weft_code probe(weft_probe* p, weft_error*) {
  write(p, &weft_probe::n_devices, 1);
  return WEFT_OK;
}

weft_code open_device(uint32_t ordinal, weft_device* device, weft_capability* c, weft_error* error) {
  return guarded(error, [&]() -> Outcome {
    if (ordinal != 0)
      return Outcome::fail(WEFT_INVALID_ARGUMENT, "there is one device, number 0, not {}", ordinal);
    auto opened = std::make_unique<Device>();
    if (auto outcome = opened->memory.reserve(); !outcome.good()) return outcome;
    write(c, &weft_capability::available, 1);
    write_text(c, &weft_capability::kind, "far");
    write_text(c, &weft_capability::label, "a strict device behind a slow link, on this CPU");
    write(c, &weft_capability::queue_kind, WEFT_QUEUE_ORDERED);
    write(c, &weft_capability::host_memory, 0);
    write(c, &weft_capability::units, 1);
    write(c, &weft_capability::dtypes, (uint64_t{1} << weft::kDTypeCount) - 1);
    write(c, &weft_capability::memory, Memory::kSpan);
    write(c, &weft_capability::max_buffer, Memory::kMaxBuffer);
    write(c, &weft_capability::max_binding, Memory::kMaxBuffer);
    write(c, &weft_capability::offset_alignment, kOffsetAlignment);
    write(c, &weft_capability::read_write_buffer, 1);
    write_text(c, &weft_capability::numerics, "computes in double, rounds each result once, keeps denormals");
    *device = reinterpret_cast<weft_device>(opened.release());
    return Outcome::ok();
  });
}

void close_device(weft_device d) {
  if (const size_t left = device_of(d)->memory.count(); left > 0)
    table().host().log(WEFT_LOG_INFO, format("far: {} buffers were never freed", left));
  delete device_of(d);
}

weft_code allocate(weft_device d, uint64_t bytes, void** handle, weft_error* error) {
  return guarded(error, [&] { return device_of(d)->memory.allocate(bytes, handle); });
}

weft_code allocate_pinned(weft_device d, uint64_t bytes, void** handle, void** address, weft_error* error) {
  const weft_code code = allocate(d, bytes, handle, error);
  if (code == WEFT_OK) *address = device_of(d)->memory.real(*handle);
  return code;
}

weft_code import_memory(weft_device d, const DLTensor* t, uint64_t bytes, void** handle, weft_error* error) {
  return guarded(error, [&] {
    if (t->device.device_type != kDLCPU)
      return Outcome::fail(WEFT_UNSUPPORTED,
                           "memory of device type {} is out of reach, only the host's is not",
                           static_cast<int>(t->device.device_type));
    return device_of(d)->memory.import(static_cast<char*>(t->data) + t->byte_offset, bytes, handle);
  });
}

void free_buffer(weft_device d, void* handle) {
  if (handle == nullptr) return;
  const auto pending = [](Queue& queue, const std::string& user) {
    queue.fail_later(Outcome::fail(WEFT_DEVICE, "buffer freed while {} was pending", user));
  };
  if (device_of(d)->memory.free(handle, pending)) return;
  const std::lock_guard lock(device_of(d)->mutex);
  device_of(d)->error = Outcome::fail(WEFT_DEVICE, "a handle was freed that no buffer has: freed twice?");
}

weft_code open_queue(weft_device d, weft_queue* queue, weft_error* error) {
  return guarded(error, [&] {
    static std::atomic<uint32_t> seed = 1;
    *queue = reinterpret_cast<weft_queue>(new DeviceQueue(*device_of(d), seed++));
    return Outcome::ok();
  });
}

void close_queue(weft_queue q) { delete queue_of(q); }

Outcome copy_task(Memory& memory, const weft_copy& c, far::Task& task) {
  task.name = "a copy";
  auto side = [&](void* handle, uint64_t offset) {
    if (handle == nullptr) return Outcome::ok();
    task.holds.push_back(handle);
    return memory.check(handle, offset, c.bytes);
  };
  if (auto outcome = side(c.source, c.source_offset); !outcome.good()) return outcome;
  if (auto outcome = side(c.target, c.target_offset); !outcome.good()) return outcome;
  std::vector<char> staged;
  const auto* host_source = static_cast<const char*>(c.host_source);
  if (c.source == nullptr) staged.assign(host_source, host_source + c.bytes);
  task.run = [copy = c, staged = std::move(staged), &memory] {
    const char* from = copy.source ? memory.real(copy.source) + copy.source_offset : staged.data();
    void* to = copy.target ? memory.real(copy.target) + copy.target_offset : copy.host_target;
    std::memmove(to, from, copy.bytes);
    return Outcome::ok();
  };
  return Outcome::ok();
}

weft_code copy(weft_queue q, const weft_copy* c, weft_error* error) {
  return guarded(error, [&]() -> Outcome {
    if (c->bytes == 0) return Outcome::ok();
    Queue& queue = queue_of(q)->queue;
    far::Task task;
    if (auto outcome = copy_task(queue.memory(), *c, task); !outcome.good()) return outcome;
    queue.push(std::move(task));
    if (c->target == nullptr) queue.drain();
    return Outcome::ok();
  });
}

weft_code synchronize(weft_queue q, weft_error* error) {
  return guarded(error, [&] {
    auto outcome = queue_of(q)->queue.synchronize();
    if (!outcome.good()) return outcome;
    Device& device = queue_of(q)->device;
    const std::lock_guard lock(device.mutex);
    return std::exchange(device.error, Outcome::ok());
  });
}

weft_code mark(weft_queue q, uint64_t* point, weft_error*) {
  *point = queue_of(q)->queue.mark();
  return WEFT_OK;
}

weft_code wait(weft_queue q, weft_queue other, uint64_t point, weft_error* error) {
  return guarded(error, [&] {
    const auto progress = queue_of(other)->queue.progress();
    const auto run = [progress, point] {
      progress->await(point, UINT64_MAX);
      return Outcome::ok();
    };
    queue_of(q)->queue.push({.name = "a wait", .holds = {}, .run = run});
    return Outcome::ok();
  });
}

weft_code await(weft_queue q, uint64_t point, uint64_t nanoseconds, uint64_t* reached, weft_error*) {
  *reached = queue_of(q)->queue.progress()->await(point, nanoseconds);
  return WEFT_OK;
}

// ---- stamps

weft_code stamp(weft_queue q, weft_error* error) {
  return guarded(error, [&] {
    const auto when = std::make_shared<std::chrono::steady_clock::time_point>();
    const auto run = [when] {
      *when = std::chrono::steady_clock::now();
      return Outcome::ok();
    };
    queue_of(q)->stamps.push_back(when);
    queue_of(q)->queue.push({.name = "a stamp", .holds = {}, .run = run});
    return Outcome::ok();
  });
}

weft_code read_stamps(weft_queue q, uint64_t* nanoseconds, uint32_t n, weft_error* error) {
  return guarded(error, [&]() -> Outcome {
    queue_of(q)->queue.drain();
    const auto stamps = std::exchange(queue_of(q)->stamps, {});
    if (stamps.size() != n)
      return Outcome::fail(WEFT_INVALID_ARGUMENT, "{} stamps are asked for, there are {}", n, stamps.size());
    for (uint32_t i = 0; i < n; ++i)
      nanoseconds[i] = static_cast<uint64_t>(std::chrono::nanoseconds(*stamps[i] - *stamps[0]).count());
    return Outcome::ok();
  });
}

// ---- sequences
// --------------------------------------------------------------------------------------------------

// A run is one task. Its steps run in a random order among those that the description allows.
weft_code make_sequence(weft_device, const weft_sequence_desc* desc, weft_sequence* sequence, uint32_t*,
                        weft_error* error) {
  return guarded(error, [&] {
    *sequence = reinterpret_cast<weft_sequence>(new far::Sequence(desc));
    return Outcome::ok();
  });
}

weft_code run_sequence(weft_sequence s, weft_queue q, void* const* handles, uint32_t n, weft_error* error) {
  return guarded(error, [&]() -> Outcome {
    const auto& sequence = *reinterpret_cast<far::Sequence*>(s);
    Queue& queue = queue_of(q)->queue;
    far::Task run{.name = "a sequence", .holds = {}, .run = {}};
    std::vector<far::Task> tasks;
    for (const auto& step : sequence.steps()) {
      far::Task& task = tasks.emplace_back();
      const weft_copy copy = step.bound_copy({handles, n});
      auto outcome = step.launch  ? launch_task(queue.memory(), step.bound_launch({handles, n}).get(), task)
                     : copy.bytes ? copy_task(queue.memory(), copy, task)
                                  : Outcome::ok();
      if (!outcome.good()) return outcome;
      run.holds.insert(run.holds.end(), task.holds.begin(), task.holds.end());
    }
    run.run = [order = sequence.any_order(), tasks = std::move(tasks)] {
      Outcome first;
      for (const size_t i : order) {
        Outcome outcome = tasks[i].run ? tasks[i].run() : Outcome::ok();
        if (first.good()) first = std::move(outcome);
      }
      return first;
    };
    queue.push(std::move(run));
    return Outcome::ok();
  });
}

void free_sequence(weft_sequence s) { delete reinterpret_cast<far::Sequence*>(s); }

weft_code kernels(weft_device, const weft_kernel* const** list, uint32_t* n, weft_error*) {
  *list = table().data();
  *n = table().size();
  return WEFT_OK;
}

constexpr weft_backend kBackend = {
    .size = sizeof(weft_backend),
    .abi = WEFT_ABI,
    .name = "far",
    .version = "0.1.0",
    .probe = probe,
    .open_device = open_device,
    .close_device = close_device,
    .allocate = allocate,
    .free = free_buffer,
    .open_queue = open_queue,
    .close_queue = close_queue,
    .copy = copy,
    .synchronize = synchronize,
    .kernels = kernels,
    .compile = nullptr,
    .release_module = nullptr,
    .dispatch = nullptr,
    .mark = mark,
    .wait = wait,
    .await = await,
    .allocate_pinned = allocate_pinned,
    .memory_free = nullptr,
    .import_memory = import_memory,
    .import_queue = nullptr,
    .native = nullptr,
    .make_sequence = make_sequence,
    .run_sequence = run_sequence,
    .free_sequence = free_sequence,
    .stamp = stamp,
    .read_stamps = read_stamps,
};

}  // namespace

weft_code WEFT_NEGOTIATE(const weft_host* host, const weft_backend** backend, weft_error* error) {
  return guarded(error, [&]() -> Outcome {
    if (auto outcome = Host(host).speaks(); !outcome.good()) return outcome;
    table().set_host(host);
    *backend = &kBackend;
    return Outcome::ok();
  });
}
