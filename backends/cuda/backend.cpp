#include "device.hpp"
#include "hopper_kernels.hpp"
#include "kernels.hpp"
#include "nvrtc.hpp"

// CUDA devices: memory, queues with points, sequences as graphs, text compiled by NVRTC, and the kernels in
// kernels/. Products come from there on GPUs with wgmma, elsewhere from the provider cublaslt, or from text.
namespace weft::cuda {
namespace {

using namespace backend;

// Enqueues on the stream of the launch's queue.
weft_code launch(const weft_launch* l, weft_error* error) {
  const auto set = outcome(cudaSetDevice(queue_of(l->queue)->device.ordinal), "cudaSetDevice");
  return set.good() ? KernelTable::launch_now(l, error) : guarded(error, [&] { return set; });
}

std::atomic<const weft_host*> the_host = nullptr;

KernelTable& table() {
  static KernelTable kernels("cuda", {hopper_kernels(), own_kernels()}, launch, WEFT_KERNEL_RECORDABLE);
  return kernels;
}

weft_code probe(weft_probe* p, weft_error*) {
  int n = 0;
  const cudaError_t error = cudaGetDeviceCount(&n);
  write(p, &weft_probe::n_devices, error == cudaSuccess ? n : 0);
  if (error != cudaSuccess || n == 0)
    write_text(p, &weft_probe::reason, error == cudaSuccess ? "no CUDA device" : cudaGetErrorString(error));
  cudaGetLastError();
  return WEFT_OK;
}

void write_capability(int ordinal, const cudaDeviceProp& p, weft_capability* c) {
  using C = weft_capability;
  write(c, &C::available, 1);
  write_text(c, &C::kind, "cuda");
  write_text(c, &C::label, p.name);
  write(c, &C::ordinal, ordinal);
  write(c, &C::queue_kind, WEFT_QUEUE_ORDERED);
  write(c, &C::host_memory, 0);
  write(c, &C::units, p.multiProcessorCount);
  const auto bit = [](DType t) { return uint64_t{1} << static_cast<int>(t); };
  const uint64_t all = (uint64_t{1} << weft::kDTypeCount) - 1;
  write(c, &C::dtypes, all & ~(bit(DType::f8e4m3) | bit(DType::f8e5m2)));
  write(c, &C::memory, p.totalGlobalMem);
  write(c, &C::max_buffer, p.totalGlobalMem);
  write(c, &C::max_binding, p.totalGlobalMem);
  write(c, &C::offset_alignment, 16);
  write(c, &C::read_write_buffer, 1);
  write(c, &C::dlpack, kDLCUDA);
  if (nvrtc(nullptr)) {  // without it, no texts
    write_text(c, &C::dialect, "cuda_cpp");
    write(c, &C::subgroup, p.warpSize);
    write(c, &C::group_items, p.maxThreadsPerBlock);
    write(c, &C::shared_bytes, p.sharedMemPerBlock);
  }
  write_text(c, &C::numerics, "denormals kept, correctly rounded division, accumulates in f32");
}

weft_code describe(uint32_t ordinal, weft_capability* c, weft_error* error) {
  return guarded(error, [&]() -> Outcome {
    cudaDeviceProp properties{};
    WEFT_CUDA_TRY(cudaGetDeviceProperties(&properties, static_cast<int>(ordinal)));
    write_capability(static_cast<int>(ordinal), properties, c);
    return Outcome::ok();
  });
}

weft_code open_device(uint32_t ordinal, weft_device* device, weft_capability* c, weft_error* error) {
  return guarded(error, [&]() -> Outcome {
    cudaDeviceProp properties{};
    WEFT_CUDA_TRY(cudaGetDeviceProperties(&properties, static_cast<int>(ordinal)));
    write_capability(static_cast<int>(ordinal), properties, c);
    const int architecture = 10 * properties.major + properties.minor;
    const auto blocks = static_cast<uint64_t>(properties.multiProcessorCount) *
                        static_cast<unsigned>(properties.maxThreadsPerMultiProcessor) / kBlock;
    *device = reinterpret_cast<weft_device>(
        new Device{static_cast<int>(ordinal), architecture, properties.major >= 9, blocks});
    return Outcome::ok();
  });
}

void close_device(weft_device d) {
  release_modules(*device_of(d));
  delete device_of(d);
}

weft_code allocate(weft_device d, uint64_t bytes, void** handle, weft_error* error) {
  return guarded(error, [&]() -> Outcome {
    WEFT_CUDA_TRY(cudaSetDevice(device_of(d)->ordinal));
    return outcome(cudaMalloc(handle, std::max<uint64_t>(bytes, 1)), "cudaMalloc");
  });
}

weft_code allocate_pinned(weft_device d, uint64_t bytes, void** handle, void** address, weft_error* error) {
  return guarded(error, [&]() -> Outcome {
    WEFT_CUDA_TRY(cudaSetDevice(device_of(d)->ordinal));
    WEFT_CUDA_TRY(cudaHostAlloc(handle, std::max<uint64_t>(bytes, 1), cudaHostAllocDefault));
    *address = *handle;
    return Outcome::ok();
  });
}

bool is_pinned(void* handle) {
  cudaPointerAttributes a{};
  return cudaPointerGetAttributes(&a, handle) == cudaSuccess && a.type == cudaMemoryTypeHost;
}

/// Memory that this backend allocated. An import has the owner's address and is not freed.
struct Imports {
  std::mutex mutex;
  std::vector<void*> handles;
};
Imports& imports() {
  static Imports all;
  return all;
}

void free_buffer(weft_device d, void* handle) {
  if (!handle) return;
  {
    const std::lock_guard lock(imports().mutex);
    auto& all = imports().handles;
    if (const auto at = std::ranges::find(all, handle); at != all.end()) {
      all.erase(at);
      return;
    }
  }
  cudaSetDevice(device_of(d)->ordinal);
  is_pinned(handle) ? cudaFreeHost(handle) : cudaFree(handle);
}

weft_code import_memory(weft_device d, const DLTensor* t, uint64_t, void** handle, weft_error* error) {
  return guarded(error, [&] {
    if (t->device.device_type != kDLCUDA || t->device.device_id != device_of(d)->ordinal)
      return Outcome::fail(WEFT_UNSUPPORTED, "memory of DLPack's device {}:{} is out of reach of cuda:{}",
                           static_cast<int>(t->device.device_type), t->device.device_id,
                           device_of(d)->ordinal);
    *handle = static_cast<char*>(t->data) + t->byte_offset;
    const std::lock_guard lock(imports().mutex);
    imports().handles.push_back(*handle);
    return Outcome::ok();
  });
}

uint64_t memory_free(weft_device d) {
  size_t left = 0, all = 0;
  cudaSetDevice(device_of(d)->ordinal);
  return cudaMemGetInfo(&left, &all) == cudaSuccess ? left : 0;
}

weft_code native(weft_device d, weft_queue q, const char* name, void** object, weft_error* error) {
  return guarded(error, [&] {
    if (q && std::string_view(name) == "cuda.stream") {
      *object = queue_of(q)->stream;
      return settle(*queue_of(q));
    }
    return Outcome::fail(WEFT_UNSUPPORTED, "cuda:{} has no {}; a queue has cuda.stream",
                         device_of(d)->ordinal, name);
  });
}

weft_code kernels(weft_device, const weft_kernel* const** list, uint32_t* n, weft_error*) {
  *list = table().data();
  *n = table().size();
  return WEFT_OK;
}

constexpr weft_backend kBackend = {
    .size = sizeof(weft_backend),
    .abi = WEFT_ABI,
    .name = "cuda",
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
    .compile = compile,
    .release_module = release_module,
    .dispatch = dispatch,
    .mark = mark,
    .wait = wait,
    .await = await,
    .allocate_pinned = allocate_pinned,
    .memory_free = memory_free,
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

}  // namespace weft::cuda

weft_code WEFT_NEGOTIATE(const weft_host* host, const weft_backend** backend, weft_error* error) {
  using namespace weft::cuda;
  return guarded(error, [&]() -> Outcome {
    if (auto outcome = Host(host).speaks(); !outcome.good()) return outcome;
    table().set_host(host);
    the_host = host;
    *backend = &kBackend;
    return Outcome::ok();
  });
}
