#include <atomic>

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

constexpr weft_backend kBackend = {
    .size = sizeof(weft_backend),
    .abi = WEFT_ABI,
    .name = "opencl",
    .version = "OpenCL 1.2",
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
    .compile = compile,
    .release_module = release_module,
    .dispatch = dispatch,
    .mark = mark,
    .wait = wait,
    .await = await,
    .allocate_pinned = allocate_pinned,
    .memory_free = nullptr,
    .import_memory = import_memory,
    .import_queue = import_queue,
    .native = native,
    .make_sequence = make_sequence,
    .run_sequence = run_sequence,
    .free_sequence = free_sequence,
    .describe = describe,
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
