#include <cstdlib>
#include <cstring>
#include <vector>

#include "weft/backend.hpp"

// A backend to copy: one device in host memory, every primitive op, two kernels of its own. Read it next to
// weft/backend.h; each function below is one entry of weft_backend, in that order. README.md says how to make
// it yours.
namespace weft::kernels {
std::vector<backend::KernelRecord> own();     // made by weft_backend() from the files in kernels/
std::vector<backend::KernelRecord> shared();  // shared.cpp
}  // namespace weft::kernels

namespace {

using namespace weft::backend;

/// Your driver's context. It holds everything that a device needs; the kernel table is the only global.
struct Device {
  uint32_t ordinal;
};
struct Queue {
  Device* device;
};

// The host carries these pointers and never looks inside.
Queue* queue_of(weft_queue q) { return reinterpret_cast<Queue*>(q); }
Device* device_of(weft_device d) { return reinterpret_cast<Device*>(d); }

/// Own kernels come first and are asked first; calls that they refuse go to the shared ones.
KernelTable& table() {
  static KernelTable kernels("template", {weft::kernels::own(), weft::kernels::shared()});
  return kernels;
}

/// Load the driver here. A machine without one is no error: report 0 devices and say why in `reason`.
weft_code probe(weft_probe* p, weft_error*) {
  write(p, &weft_probe::n_devices, 1);
  return WEFT_OK;
}

weft_code open_device(uint32_t ordinal, weft_device* device, weft_capability* c, weft_error* error) {
  return guarded(error, [&]() -> Outcome {
    if (ordinal != 0)
      return Outcome::fail(WEFT_INVALID_ARGUMENT, "there is one device, number 0, not {}", ordinal);
    write(c, &weft_capability::available, 1);
    write_text(c, &weft_capability::kind, "cpu-like");
    write_text(c, &weft_capability::label, "the template device");
    write(c, &weft_capability::ordinal, ordinal);
    write(c, &weft_capability::queue_kind, WEFT_QUEUE_INLINE);  // WEFT_QUEUE_ORDERED: see backends/far
    write(c, &weft_capability::host_memory, 1);
    write(c, &weft_capability::units, 1);
    write(c, &weft_capability::dtypes, (uint64_t{1} << weft::kDTypeCount) - 1);
    write(c, &weft_capability::max_buffer, uint64_t{1} << 40);
    write(c, &weft_capability::max_binding, uint64_t{1} << 40);
    write(c, &weft_capability::offset_alignment, 1);
    write(c, &weft_capability::read_write_buffer, 1);
    write_text(c, &weft_capability::numerics, "as the host's compiler rounds");
    *device = reinterpret_cast<weft_device>(new Device{ordinal});
    return Outcome::ok();
  });
}

void close_device(weft_device d) { delete device_of(d); }

/// At least 64-byte aligned, and never null: the smallest buffer is one line.
weft_code allocate(weft_device, uint64_t bytes, void** handle, weft_error* error) {
  return guarded(error, [&]() -> Outcome {
    *handle = bytes >> 40 == 0 ? std::aligned_alloc(64, (bytes / 64 + 1) * 64) : nullptr;
    return *handle != nullptr ? Outcome::ok()
                              : Outcome::fail(WEFT_OUT_OF_MEMORY, "no {} bytes are left", bytes);
  });
}

void free_buffer(weft_device, void* handle) { std::free(handle); }

weft_code open_queue(weft_device d, weft_queue* queue, weft_error* error) {
  return guarded(error, [&] {
    *queue = reinterpret_cast<weft_queue>(new Queue{device_of(d)});
    return Outcome::ok();
  });
}

void close_queue(weft_queue q) { delete queue_of(q); }

/// All four directions: a null handle means that side is host memory.
weft_code copy(weft_queue, const weft_copy* c, weft_error* error) {
  return guarded(error, [&] {
    const void* from = c->source ? static_cast<char*>(c->source) + c->source_offset : c->host_source;
    void* to = c->target ? static_cast<char*>(c->target) + c->target_offset : c->host_target;
    if (c->bytes > 0) std::memmove(to, from, c->bytes);
    return Outcome::ok();
  });
}

/// An inline queue has nothing to wait for. An ordered one waits here and reports failures since the last
/// call.
weft_code synchronize(weft_queue, weft_error*) { return WEFT_OK; }

weft_code kernels(weft_device, const weft_kernel* const** list, uint32_t* n, weft_error*) {
  *list = table().data();
  *n = table().size();
  return WEFT_OK;
}

constexpr weft_backend kBackend = {
    .size = sizeof(weft_backend),
    .abi = WEFT_ABI,
    .name = "template",
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
};

}  // namespace

/// The plug-in's only symbol.
weft_code WEFT_NEGOTIATE(const weft_host* host, const weft_backend** backend, weft_error* error) {
  return guarded(error, [&]() -> Outcome {
    if (auto outcome = Host(host).speaks(); !outcome.good()) return outcome;
    table().set_host(host);
    *backend = &kBackend;
    return Outcome::ok();
  });
}
