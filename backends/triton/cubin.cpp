#include "cubin.h"

#include <map>
#include <mutex>
#include <string_view>
#include <vector>

namespace weft::cubins {

using namespace backend;

Outcome stream_of(const Launch&, void** to);  // the file of the provider

namespace {

Outcome outcome(cudaError_t got, const char* what) {
  if (got == cudaSuccess) return Outcome::ok();
  cudaGetLastError();
  return Outcome::fail(WEFT_DEVICE, "{}: {}", what, cudaGetErrorString(got));
}

int architecture() {
  int device = 0, major = 0, minor = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  return 10 * major + minor;
}

const Cubin* cubin_of(const std::string& name, int wanted) {
  for (const Cubin& c : cubins())
    if (c.name == name && c.architecture == wanted) return &c;
  return nullptr;
}

}  // namespace

// A library belongs to no device: one is enough for all of an architecture.
const Kernel* Kernel::find(const std::string& name, std::string& why) {
  static std::mutex& mutex = *new std::mutex;
  static auto& kept = *new std::map<const Cubin*, Kernel>;
  const int wanted = architecture();
  const Cubin* cubin = cubin_of(name, wanted);
  if (!cubin) {
    why = format("no kernel {} for architecture {}", name, wanted);
    return nullptr;
  }
  const std::lock_guard lock(mutex);
  const auto [at, fresh] = kept.try_emplace(cubin);
  Kernel& kernel = at->second;
  if (fresh) {
    kernel.cubin_ = cubin;
    kernel.why_ = kernel.load().text;
  }
  why = kernel.why_;
  return why.empty() ? &kernel : nullptr;
}

// What another release has compiled may have other parameters, which nothing else would tell.
Outcome Kernel::load() {
  cudaLibrary_t library = nullptr;
  if (auto got = outcome(
          cudaLibraryLoadData(&library, cubin_->bytes, nullptr, nullptr, 0, nullptr, nullptr, 0), "loading");
      !got.good())
    return got;
  if (auto got = outcome(cudaLibraryGetKernel(&loaded_, library, cubin_->symbol), cubin_->symbol);
      !got.good())
    return got;
  const auto* entry = reinterpret_cast<const void*>(loaded_);
  size_t offset = 0, size = 0;
  const size_t last = std::string_view(cubin_->parameters).size() - 1;
  const bool enough = cudaFuncGetParamInfo(entry, last, &offset, &size) == cudaSuccess,
             more = cudaFuncGetParamInfo(entry, last + 1, &offset, &size) == cudaSuccess;
  cudaGetLastError();
  if (!enough || more)
    return Outcome::fail(WEFT_UNSUPPORTED, "{} does not have {} parameters", cubin_->name, last + 1);
  return outcome(cudaFuncSetAttribute(entry, cudaFuncAttributeMaxDynamicSharedMemorySize, cubin_->shared),
                 "shared memory");
}

Outcome Kernel::enqueue(const Launch& l, dim3 blocks, std::span<void* const> arguments) const {
  const std::string_view names = cubin_->parameters;
  void* nothing = nullptr;
  std::vector<void*> parameters;
  std::vector<int32_t> eighths(names.size());
  for (const char name : names) {
    const bool eighth = name >= 'A' && name <= 'Z';
    const auto i = static_cast<size_t>(name - (eighth ? 'A' : 'a'));
    if (name != '-' && i >= arguments.size())
      return Outcome::fail(WEFT_INTERNAL, "{} takes argument {}, got {}", cubin_->name, i, arguments.size());
    if (eighth) eighths[parameters.size()] = *static_cast<const int32_t*>(arguments[i]) / 8;
    parameters.push_back(name == '-' ? &nothing : eighth ? &eighths[parameters.size()] : arguments[i]);
  }
  void* stream = nullptr;
  if (auto got = stream_of(l, &stream); !got.good()) return got;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = dim3(static_cast<unsigned>(cubin_->threads));
  config.dynamicSmemBytes = static_cast<size_t>(cubin_->shared);
  config.stream = static_cast<cudaStream_t>(stream);
  return outcome(cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(loaded_), parameters.data()),
                 cubin_->name);
}

Support takes_sizes(const OpCall& c) {
  for (int64_t i = 0; i < c.n_inputs() + c.n_outputs(); ++i) {
    const TypeView t = i < c.n_inputs() ? c.input(i) : c.output(i - c.n_inputs());
    if (!t.has()) continue;
    for (int64_t d = 0; d < t.rank(); ++d) {
      const Dim size = t.shape()[d];
      if (!size.known()) return Support::no("an operand has sizes from {} to {}", size.min(), size.max());
      if (size.max() == 0) return Support::no("an operand is empty");
    }
    if (elements(t.max()) >= int64_t{1} << 31) return Support::no("an operand has 2^31 elements or more");
  }
  return Support::yes();
}

const char* name_of(DType t) {
  return t == DType::f32 ? "fp32" : t == DType::f16 ? "fp16" : t == DType::bf16 ? "bf16" : nullptr;
}

Support there(const std::string& name) {
  std::string why;
  for (const std::string& each : {name, name + "_aligned"})
    if (!Kernel::find(each, why)) return Support::no("{}", why);
  return Support::yes();
}

// Sequences are captured again for each set of memory, so addresses may be looked at.
const Kernel* kernel_for(const Launch& l, const std::string& name, bool multiples, std::string& why) {
  uintptr_t bits = 0;
  const auto look = [&](TensorView t) {
    if (t.has()) bits |= reinterpret_cast<uintptr_t>(t.data());
  };
  for (int64_t i = 0; i < l.call().n_inputs(); ++i) look(l.input(i));
  for (int64_t i = 0; i < l.call().n_outputs(); ++i) look(l.output(i));
  return Kernel::find(multiples && bits % 16 == 0 ? name + "_aligned" : name, why);
}

int64_t elements(std::span<const int64_t> sizes) {
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  return n;
}

}  // namespace weft::cubins
