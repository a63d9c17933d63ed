#include <algorithm>
#include <array>
#include <memory>

#include "device.hpp"
#include "nvrtc.hpp"

// Kernel texts: compiled by NVRTC, kept in the host's disk cache by text, options and versions.
namespace weft::cuda {

using namespace backend;

/// The loaded machine code of one text.
struct Program {
  explicit Program(cudaLibrary_t l) : library(l) {}
  Program(const Program&) = delete;
  ~Program() { cudaLibraryUnload(library); }
  cudaLibrary_t library;
};

/// One function of a text.
struct Module {
  Device& device;
  std::shared_ptr<Program> program;
  cudaKernel_t kernel;
  std::string entry;
};

namespace {

uint64_t fnv1a(std::string_view text, uint64_t hash) {
  for (const unsigned char c : text) hash = (hash ^ c) * 1099511628211u;
  return hash;
}
/// Two different 64-bit hashes of text, options and versions.
std::string cache_key(const std::string& all) {
  char key[64];
  std::snprintf(key, sizeof key, "cuda-%016llx%016llx",
                static_cast<unsigned long long>(fnv1a(all, 14695981039346656037u)),
                static_cast<unsigned long long>(fnv1a(all + '\n', 0x9E3779B97F4A7C15u)));
  return key;
}

std::vector<char> from_cache(const std::string& key) {
  std::vector<char> bytes;
  if (!host()->cache_get) return bytes;
  bytes.resize(host()->cache_get(key.c_str(), nullptr, 0));
  if (!bytes.empty() && host()->cache_get(key.c_str(), bytes.data(), bytes.size()) != bytes.size())
    bytes.clear();
  return bytes;
}

Outcome load(const std::vector<char>& cubin, std::shared_ptr<Program>* out) {
  cudaLibrary_t library = nullptr;
  WEFT_CUDA_TRY(cudaLibraryLoadData(&library, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  *out = std::make_shared<Program>(library);
  return Outcome::ok();
}

/// A recent program, or one from the disk cache, or a new one.
Outcome program_of(Device& d, const char* text, std::shared_ptr<Program>* out) {
  std::string missing;
  const Nvrtc* n = nvrtc(&missing);
  if (!n) return Outcome::fail(WEFT_UNSUPPORTED, "{}", missing);
  std::string all = version_of(*n) + '\n';
  for (const std::string& o : options_for(d.architecture)) all += o + '\n';
  const std::string key = cache_key(all + text);
  {
    const std::lock_guard lock(d.mutex);
    for (const auto& [known_as, program] : d.recent)
      if (known_as == key) return *out = program, Outcome::ok();
  }
  std::vector<char> cubin = from_cache(key);
  if (cubin.empty() || !load(cubin, out).good()) {  // a stale one is no error: the text is compiled again
    if (auto compiled = compile_text(*n, text, d.architecture, cubin); !compiled.good()) return compiled;
    if (auto loaded = load(cubin, out); !loaded.good()) return loaded;
    if (host()->cache_put) host()->cache_put(key.c_str(), cubin.data(), cubin.size());
  }
  constexpr size_t kMost =
      64;  // several threads compile at once, and each comes back for the other functions
  const std::lock_guard lock(d.mutex);
  d.recent.emplace_back(key, *out);
  if (d.recent.size() > kMost) d.recent.pop_front();
  return Outcome::ok();
}

// More than any text takes: 24 inputs, and the outputs of a region; 32 operands.
constexpr uint32_t kMostBuffers = 128, kMostScalars = 1024;

Module* module_of(weft_module m) { return reinterpret_cast<Module*>(m); }

}  // namespace

weft_code compile(weft_device device, const weft_source* source, weft_module* out, weft_error* error) {
  return guarded(error, [&]() -> Outcome {
    Device& d = *device_of(device);
    WEFT_CUDA_TRY(cudaSetDevice(d.ordinal));
    std::shared_ptr<Program> program;
    if (auto found = program_of(d, source->text, &program); !found.good()) return found;
    cudaKernel_t kernel = nullptr;
    WEFT_CUDA_TRY(cudaLibraryGetKernel(&kernel, program->library, source->entry));
    auto module = std::make_unique<Module>(Module{d, std::move(program), kernel, source->entry});
    const std::lock_guard lock(d.mutex);
    d.modules.insert(module.get());
    *out = reinterpret_cast<weft_module>(module.release());
    return Outcome::ok();
  });
}

void release_module(weft_module m) {
  Module* const module = module_of(m);
  {
    const std::lock_guard lock(module->device.mutex);
    module->device.modules.erase(module);
  }
  delete module;
}

void release_modules(Device& d) {
  for (Module* m : d.modules) delete m;
  d.modules.clear();
}

weft_code dispatch(weft_queue q, const weft_dispatch* d, weft_error* error) {
  return guarded(error, [&]() -> Outcome {
    if (d->global[0] == 0) return Outcome::ok();
    Queue& queue = *queue_of(q);
    WEFT_CUDA_TRY(cudaSetDevice(queue.device.ordinal));
    if (auto settled = settle(queue); !settled.good()) return settled;
    // Buffers are bound where their tensors begin, so all offsets are 0.
    const uint32_t n = d->n_buffers;
    if (n > kMostBuffers || d->n_scalars > kMostScalars)
      return Outcome::fail(WEFT_UNSUPPORTED, "{}: {} buffers and {} scalars, wanted at most {} and {}",
                           d->name, n, d->n_scalars, kMostBuffers, kMostScalars);
    std::array<void*, kMostBuffers> bases;
    std::array<void*, 2 * kMostBuffers + kMostScalars> arguments;
    int64_t offset = 0;
    for (uint32_t i = 0; i < n; ++i) {
      bases[i] = static_cast<char*>(d->buffers[i]->dl.data) + d->buffers[i]->dl.byte_offset;
      arguments[i] = &bases[i], arguments[n + i] = &offset;
    }
    for (uint32_t i = 0; i < d->n_scalars; ++i) arguments[2 * n + i] = const_cast<int32_t*>(&d->scalars[i]);
    cudaLaunchAttribute early{};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.blockDim = static_cast<unsigned>(d->local[0] ? d->local[0] : kBlock);
    const uint64_t blocks = (d->global[0] + config.blockDim.x - 1) / config.blockDim.x;
    // Without groups, the text is a loop over items: as many blocks as run at once, or fewer.
    config.gridDim =
        static_cast<unsigned>(d->local[0] ? blocks : std::min(blocks, queue.device.blocks_at_once));
    config.stream = queue.stream;
    config.attrs = &early;
    config.numAttrs = queue.device.dependent_launch ? 1 : 0;
    const void* kernel = reinterpret_cast<const void*>(module_of(d->module)->kernel);
    return outcome(cudaLaunchKernelExC(&config, kernel, arguments.data()), d->name);
  });
}

}  // namespace weft::cuda
