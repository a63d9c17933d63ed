#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "device.hpp"
#include "kernels.hpp"
#include "rtc.hpp"

// Devices of a GPU's runtime: memory, queues with points, sequences as graphs, text compiled by the vendor's
// compiler, and the kernels in kernels/. Products come from there on GPUs with wgmma, elsewhere from a
// provider, or from text.
namespace weft::cuda {

using namespace backend;

namespace {

/// Whether blocks are cut from segments that are kept: not where WEFT_GPU_POOL=0.
bool pools() {
  const char* text = std::getenv("WEFT_GPU_POOL");
  return !text || std::string_view(text) != "0";
}

Blocks::Source driver(int ordinal) {
  return {.get = [ordinal](uint64_t bytes) -> void* {
            void* at = nullptr;
            const bool got =
                gpu::set_device(ordinal) == gpu::kSuccess && gpu::allocate(&at, bytes) == gpu::kSuccess;
            if (!got) gpu::get_last_error();
            return got ? at : nullptr;
          },
          .put =
              [ordinal](void* at) {
                gpu::set_device(ordinal);
                gpu::release(at);
              }};
}

}  // namespace

Device::Device(int number, const gpu::Properties& p)
    : ordinal(number),
      architecture(10 * p.major + p.minor),
      target(gpu::target_of(p)),
      dependent_launch(gpu::starts_early(p)),
      clusters(gpu::has_clusters(p)),
      chains(gpu::has_chains(p)),
      multiprocessors(p.multiProcessorCount),
      blocks_at_once(static_cast<uint64_t>(p.multiProcessorCount) *
                     static_cast<unsigned>(p.maxThreadsPerMultiProcessor) / kBlock),
      blocks(driver(number), p.totalGlobalMem / 4, pools()) {}

namespace {

// Enqueues on the stream of the launch's queue.
weft_code launch(const weft_launch* l, weft_error* error) {
  Queue& q = *queue_of(l->queue);
  weft_code code = WEFT_OK;
  const weft_code ready = on_device(q.device, error, [&] {
    note(q, l->plan->kernel->id);
    code = KernelTable::launch_now(l, error);
    if (code == WEFT_DEVICE) return Outcome::fail(code, "{}", error ? error->text : "");
    return code == WEFT_OK ? launched(q) : Outcome::ok();
  });
  return ready == WEFT_OK ? code : ready;
}

std::atomic<const weft_host*> the_host = nullptr;

KernelTable& table() {
  static KernelTable kernels(gpu::kKind, {hopper_kernels(), own_kernels()}, launch, WEFT_KERNEL_RECORDABLE);
  return kernels;
}

weft_code probe(weft_probe* p, weft_error* error) {
  return guarded(error, [&] {
    int n = 0, of_driver = 0, of_runtime = 0;
    const gpu::Error got = gpu::device_count(&n);
    write(p, &weft_probe::n_devices, got == gpu::kSuccess ? n : 0);
    if (got == gpu::kSuccess && n > 0) return Outcome::ok();
    std::string reason =
        got == gpu::kSuccess ? format("no {} device", gpu::kVendor) : gpu::get_error_string(got);
    if (gpu::runtime_version(&of_runtime) == gpu::kSuccess &&
        gpu::driver_version(&of_driver) == gpu::kSuccess)
      reason += of_driver == 0 ? std::string(" (there is no driver)")
                               : format(" (the driver's version is {}, the runtime's {})",
                                        gpu::version_text(of_driver), gpu::version_text(of_runtime));
    gpu::get_last_error();
    write_text(p, &weft_probe::reason, reason);
    return Outcome::ok();
  });
}

/// What the device is, or why it can't be used.
Outcome look_at(uint32_t ordinal, gpu::Properties& p) {
  int n = 0;
  WEFT_GPU_TRY(gpu::device_count(&n));
  if (ordinal >= static_cast<uint32_t>(n))
    return Outcome::fail(WEFT_UNAVAILABLE, "there is no {}:{}: devices are 0 to {}", gpu::kKind, ordinal,
                         n - 1);
  WEFT_GPU_TRY(gpu::properties(&p, static_cast<int>(ordinal)));
  if (const std::string why = gpu::refused(p); !why.empty())
    return Outcome::fail(WEFT_UNSUPPORTED, "{}: {}", p.name, why);
  return Outcome::ok();
}

void write_capability(int ordinal, const gpu::Properties& p, weft_capability* c) {
  using C = weft_capability;
  write(c, &C::available, 1);
  write_text(c, &C::kind, gpu::kKind);
  write_text(c, &C::label, p.name);
  write(c, &C::ordinal, ordinal);
  write(c, &C::queue_kind, WEFT_QUEUE_ORDERED);
  write(c, &C::host_memory, 0);
  write(c, &C::units, p.multiProcessorCount);
  write(c, &C::dtypes, (uint64_t{1} << weft::kDTypeCount) - 1);
  write(c, &C::memory, p.totalGlobalMem);
  write(c, &C::max_buffer, p.totalGlobalMem);
  write(c, &C::max_binding, p.totalGlobalMem);
  write(c, &C::offset_alignment, 16);
  write(c, &C::read_write_buffer, 1);
  write(c, &C::dlpack, gpu::kMemory);
  if (compiler(nullptr)) {  // without it, no texts
    write_text(c, &C::dialect, "cuda_cpp");
    write(c, &C::subgroup, p.warpSize);
    write(c, &C::group_items, p.maxThreadsPerBlock);
    write(c, &C::shared_bytes, p.sharedMemPerBlock);
  }
  write_text(c, &C::numerics, "denormals kept, correctly rounded division, accumulates in f32");
}

weft_code describe(uint32_t ordinal, weft_capability* c, weft_error* error) {
  return guarded(error, [&]() -> Outcome {
    gpu::Properties properties{};
    if (auto known = look_at(ordinal, properties); !known.good()) return known;
    write_capability(static_cast<int>(ordinal), properties, c);
    return Outcome::ok();
  });
}

weft_code open_device(uint32_t ordinal, weft_device* device, weft_capability* c, weft_error* error) {
  return guarded(error, [&]() -> Outcome {
    gpu::Properties properties{};
    if (auto known = look_at(ordinal, properties); !known.good()) return known;
    write_capability(static_cast<int>(ordinal), properties, c);
    *device = reinterpret_cast<weft_device>(new Device(static_cast<int>(ordinal), properties));
    return Outcome::ok();
  });
}

void close_device(weft_device device) {
  Device& d = *device_of(device);
  release_modules(d);
  const auto held = d.blocks.statistics();
  const std::string text = format("{}: {} blocks were given, of {} segments; most bytes used {}, held {}",
                                  name_of(d), held.given, held.segments, held.most_used, held.most_held);
  if (host() && host()->log) host()->log(WEFT_LOG_DEBUG, text.c_str());
  delete &d;
}

weft_code native(weft_device device, weft_queue q, const char* name, void** object, weft_error* error) {
  Device& d = *device_of(device);
  return on_device(d, error, [&]() -> Outcome {
    if (!q || std::string_view(name) != gpu::kNativeStream)
      return Outcome::fail(WEFT_UNSUPPORTED, "{} has no {}; a queue has {}", name_of(d), name,
                           gpu::kNativeStream);
    *object = queue_of(q)->stream;
    note(*queue_of(q), "work of others on its stream");
    return settle(*queue_of(q));
  });
}

weft_code kernels(weft_device, const weft_kernel* const** list, uint32_t* n, weft_error* error) {
  return guarded(error, [&] {
    static const std::vector<const weft_kernel*> all = [] {
      std::vector<const weft_kernel*> own(table().data(), table().data() + table().size());
      const auto others = gpu::kernels_of_runtime(host());
      own.insert(own.end(), others.begin(), others.end());
      return own;
    }();
    *list = all.data();
    *n = static_cast<uint32_t>(all.size());
    return Outcome::ok();
  });
}

constexpr weft_backend kBackend = {
    .size = sizeof(weft_backend),
    .abi = WEFT_ABI,
    .name = gpu::kKind,
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
    .stamp = stamp,
    .read_stamps = read_stamps,
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
