#include <atomic>
#include <tuple>

#include "device.h"

// OpenCL: memory, queues, a compiler. It has no kernels: the provider `loops` renders every op as OpenCL C.
namespace weft::opencl {
namespace {

std::atomic<const weft_host*> the_host{nullptr};

weft_code kernels(weft_device, const weft_kernel* const** list, uint32_t* n, weft_error*) {
  *list = nullptr;
  *n = 0;
  return WEFT_OK;
}

/// An entry as the table has it: what it throws ends here, as an error.
template <auto entry>
struct Caught;
template <class... A, weft_code (*entry)(A...)>
struct Caught<entry> {
  static weft_code call(A... arguments) noexcept {
    weft_error* error = std::get<sizeof...(A) - 1>(std::tie(arguments...));
    try {
      return entry(arguments...);
    } catch (const std::bad_alloc&) {
      return fail(error, WEFT_OUT_OF_MEMORY, "opencl: out of host memory");
    } catch (const std::exception& e) {
      return fail(error, WEFT_INTERNAL, "opencl: %s", e.what());
    }
  }
};

constexpr weft_backend kBackend = {
    .size = sizeof(weft_backend),
    .abi = WEFT_ABI,
    .name = "opencl",
    .version = "OpenCL 1.2",
    .probe = Caught<probe>::call,
    .open_device = Caught<open_device>::call,
    .close_device = close_device,
    .allocate = Caught<allocate>::call,
    .free = free_buffer,
    .open_queue = Caught<open_queue>::call,
    .close_queue = close_queue,
    .copy = Caught<copy>::call,
    .synchronize = Caught<synchronize>::call,
    .kernels = kernels,
    .compile = Caught<compile>::call,
    .release_module = release_module,
    .dispatch = Caught<dispatch>::call,
    .mark = Caught<mark>::call,
    .wait = Caught<wait>::call,
    .await = Caught<await>::call,
    .allocate_pinned = Caught<allocate_pinned>::call,
    .memory_free = nullptr,
    .import_memory = Caught<import_memory>::call,
    .import_queue = Caught<import_queue>::call,
    .native = Caught<native>::call,
    .make_sequence = Caught<make_sequence>::call,
    .run_sequence = Caught<run_sequence>::call,
    .free_sequence = free_sequence,
    .describe = Caught<describe>::call,
    .stamp = Caught<stamp>::call,
    .read_stamps = Caught<read_stamps>::call,
};

}  // namespace

const weft_host* host() { return the_host; }

}  // namespace weft::opencl

extern "C" weft_code WEFT_NEGOTIATE(const weft_host* host, const weft_backend** backend, weft_error* error) {
  if (host->abi_min > WEFT_ABI || host->abi_max < WEFT_ABI)
    return weft::opencl::fail(error, WEFT_VERSION, "opencl speaks version %u, the host speaks %u to %u",
                              WEFT_ABI, host->abi_min, host->abi_max);
  weft::opencl::the_host = host;
  *backend = &weft::opencl::kBackend;
  return WEFT_OK;
}
