#include "nvrtc.hpp"

#include <dlfcn.h>

#include <memory>

namespace weft::cuda {

using backend::Outcome;

// Declared here as nvrtc.h declares it, which a small toolkit lacks.
struct Nvrtc {
  using Program = struct NvrtcProgram*;
  int (*nvrtcVersion)(int* major, int* minor);
  const char* (*nvrtcGetErrorString)(int);
  int (*nvrtcCreateProgram)(Program*, const char* text, const char* name, int n_headers,
                            const char* const* headers, const char* const* names);
  int (*nvrtcDestroyProgram)(Program*);
  int (*nvrtcCompileProgram)(Program, int n_options, const char* const* options);
  int (*nvrtcGetProgramLogSize)(Program, size_t*);
  int (*nvrtcGetProgramLog)(Program, char*);
  int (*nvrtcGetCUBINSize)(Program, size_t*);
  int (*nvrtcGetCUBIN)(Program, char*);
  std::string missing;  // why it can't be used; empty if it can
};

namespace {

Nvrtc open_library() {
  Nvrtc n{};
  void* library = nullptr;
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"})
    if (!library) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    n.missing = "libnvrtc.so.13 was not found";
    return n;
  }
  const auto load = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (!function) n.missing = std::string("libnvrtc.so has no ") + name;
  };
#define WEFT_LOAD(f) load(n.f, #f)
  WEFT_LOAD(nvrtcVersion), WEFT_LOAD(nvrtcGetErrorString), WEFT_LOAD(nvrtcCreateProgram);
  WEFT_LOAD(nvrtcDestroyProgram), WEFT_LOAD(nvrtcCompileProgram), WEFT_LOAD(nvrtcGetProgramLogSize);
  WEFT_LOAD(nvrtcGetProgramLog), WEFT_LOAD(nvrtcGetCUBINSize), WEFT_LOAD(nvrtcGetCUBIN);
#undef WEFT_LOAD
  return n;
}

std::string log_of(const Nvrtc& n, Nvrtc::Program program) {
  size_t size = 0;
  n.nvrtcGetProgramLogSize(program, &size);
  std::string log(size, '\0');
  if (size) n.nvrtcGetProgramLog(program, log.data());
  return log.c_str();
}

}  // namespace

const Nvrtc* nvrtc(std::string* missing) {
  static const Nvrtc& n = *new Nvrtc(open_library());
  if (n.missing.empty()) return &n;
  if (missing) *missing = n.missing;
  return nullptr;
}

std::string version_of(const Nvrtc& n) {
  int major = 0, minor = 0;
  n.nvrtcVersion(&major, &minor);
  return backend::format("{}.{}", major, minor);
}

std::vector<std::string> options_for(int architecture) {
  std::vector<std::string> all = {backend::format("--gpu-architecture=sm_{}", architecture), "--std=c++17",
                                  "--fmad=false", "--minimal"};
  if (architecture >= 90) all.push_back("-DWEFT_STARTS_EARLY");
  return all;
}

Outcome compile_text(const Nvrtc& n, const char* text, int architecture, std::vector<char>& cubin) {
  Nvrtc::Program program = nullptr;
  if (const int code = n.nvrtcCreateProgram(&program, text, "weft.cu", 0, nullptr, nullptr))
    return Outcome::fail(WEFT_DEVICE, "nvrtcCreateProgram: {}", n.nvrtcGetErrorString(code));
  const auto destroy = [&](Nvrtc::Program p) { n.nvrtcDestroyProgram(&p); };
  const std::unique_ptr<NvrtcProgram, decltype(destroy)> owned(program, destroy);
  const std::vector<std::string> options = options_for(architecture);
  std::vector<const char*> pointers;
  for (const std::string& o : options) pointers.push_back(o.c_str());
  if (const int code = n.nvrtcCompileProgram(program, static_cast<int>(pointers.size()), pointers.data()))
    return Outcome::fail(WEFT_INVALID_ARGUMENT, "NVRTC for sm_{}: {}: {}", architecture,
                         n.nvrtcGetErrorString(code), log_of(n, program));
  size_t size = 0;
  n.nvrtcGetCUBINSize(program, &size);
  cubin.resize(size);
  if (const int code = n.nvrtcGetCUBIN(program, cubin.data()))
    return Outcome::fail(WEFT_DEVICE, "nvrtcGetCUBIN: {}", n.nvrtcGetErrorString(code));
  return Outcome::ok();
}

}  // namespace weft::cuda
