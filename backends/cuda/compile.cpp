#include <algorithm>
#include <array>
#include <memory>

#include "device.hpp"
#include "rtc.hpp"

// Kernel texts: compiled by the vendor's compiler, kept in the host's disk cache by text, options and
// versions.
namespace weft::cuda {

using namespace backend;

/// The loaded machine code of one text.
struct Program {
  Program(Device& d, gpu::Module m) : device(d), module(m) {}
  Program(const Program&) = delete;
  ~Program() {
    if (!device.failed) gpu::unload(module);
  }
  Device& device;
  gpu::Module module;
};

/// One function of a text.
struct Module {
  Device& device;
  std::shared_ptr<Program> program;
  gpu::Function kernel;
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
  std::snprintf(key, sizeof key, "%s-%016llx%016llx", gpu::kKind,
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

Outcome load(Device& d, const std::vector<char>& code, std::shared_ptr<Program>* out) {
  gpu::Module module = nullptr;
  WEFT_GPU_TRY(gpu::load(&module, code.data()));
  *out = std::make_shared<Program>(d, module);
  return Outcome::ok();
}

/// A recent program, or one from the disk cache, or a new one.
Outcome program_of(Device& d, const char* text, std::shared_ptr<Program>* out) {
  std::string missing;
  const Compiler* c = compiler(&missing);
  if (!c) return Outcome::fail(WEFT_UNSUPPORTED, "{}", missing);
  std::string all = version_of(*c) + '\n';
  for (const std::string& o : options_for(d)) all += o + '\n';
  const std::string key = cache_key(all + text);
  {
    const std::lock_guard lock(d.mutex);
    for (const auto& [known_as, program] : d.recent)
      if (known_as == key) return *out = program, Outcome::ok();
  }
  std::vector<char> code = from_cache(key);
  if (code.empty() || !load(d, code, out).good()) {  // a stale one is no error: the text is compiled again
    if (auto compiled = compile_text(*c, text, d, code); !compiled.good()) return compiled;
    if (auto loaded = load(d, code, out); !loaded.good()) return loaded;
    if (host()->cache_put) host()->cache_put(key.c_str(), code.data(), code.size());
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
  Device& d = *device_of(device);
  return on_device(d, error, [&]() -> Outcome {
    std::shared_ptr<Program> program;
    if (auto found = program_of(d, source->text, &program); !found.good()) return found;
    gpu::Function kernel = nullptr;
    WEFT_GPU_TRY(gpu::find_function(&kernel, program->module, source->entry));
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
  Queue& queue = *queue_of(q);
  return on_device(queue.device, error, [&]() -> Outcome {
    if (d->global[0] == 0) return Outcome::ok();
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
    if (auto settled = settle(queue, d->name); !settled.good()) return settled;
    const auto threads = static_cast<unsigned>(d->local[0] ? d->local[0] : kBlock);
    const uint64_t blocks = (d->global[0] + threads - 1) / threads;
    // Without groups, the text is a loop over items: as many blocks as run at once, or fewer.
    const auto started =
        static_cast<unsigned>(d->local[0] ? blocks : std::min(blocks, queue.device.blocks_at_once));
    const gpu::Launch how{{started}, threads, 0, queue.stream, queue.device.dependent_launch};
    auto enqueued =
        outcome(gpu::launch_function(how, module_of(d->module)->kernel, arguments.data()), d->name);
    return enqueued.good() ? launched(queue) : enqueued;
  });
}

}  // namespace weft::cuda
