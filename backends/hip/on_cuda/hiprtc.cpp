#include <dlfcn.h>

#include <cstring>
#include <string>
#include <vector>

// libhiprtc by NVRTC: texts for backends/hip where it runs on an NVIDIA GPU. Options are told in the other's
// words; those that it has no words for are left out.
namespace {

using Program = struct NvrtcProgram*;

template <class F>
F nvrtc(const char* name) {
  static void* const library = [] {
    void* found = nullptr;
    for (const char* file : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"})
      if (!found) found = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    return found;
  }();
  return library ? reinterpret_cast<F>(dlsym(library, name)) : nullptr;
}
template <class... A>
int call(const char* name, A... arguments) {
  constexpr int kInternalError = 11;
  const auto f = nvrtc<int (*)(A...)>(name);
  return f ? f(arguments...) : kInternalError;
}

}  // namespace

#define WEFT_EXPORT extern "C" __attribute__((visibility("default")))

WEFT_EXPORT int hiprtcVersion(int* major, int* minor) { return call("nvrtcVersion", major, minor); }
WEFT_EXPORT const char* hiprtcGetErrorString(int error) {
  const auto f = nvrtc<const char* (*)(int)>("nvrtcGetErrorString");
  return f ? f(error) : "NVRTC was not found";
}
WEFT_EXPORT int hiprtcCreateProgram(Program* program, const char* text, const char* name, int n,
                                    const char* const* headers, const char* const* names) {
  return call("nvrtcCreateProgram", program, text, name, n, headers, names);
}
WEFT_EXPORT int hiprtcDestroyProgram(Program* program) { return call("nvrtcDestroyProgram", program); }
WEFT_EXPORT int hiprtcCompileProgram(Program program, int n, const char* const* options) {
  std::vector<std::string> told = {"--fmad=false", "--minimal"};
  for (int i = 0; i < n; ++i) {
    const std::string option = options[i], target = "--offload-arch=";
    if (option.starts_with(target)) told.push_back("--gpu-architecture=" + option.substr(target.size()));
    if (option.starts_with("-std=")) told.push_back("-" + option);
  }
  std::vector<const char*> pointers;
  for (const std::string& o : told) pointers.push_back(o.c_str());
  return call("nvrtcCompileProgram", program, static_cast<int>(pointers.size()), pointers.data());
}
WEFT_EXPORT int hiprtcGetProgramLogSize(Program program, size_t* size) {
  return call("nvrtcGetProgramLogSize", program, size);
}
WEFT_EXPORT int hiprtcGetProgramLog(Program program, char* log) {
  return call("nvrtcGetProgramLog", program, log);
}
WEFT_EXPORT int hiprtcGetCodeSize(Program program, size_t* size) {
  return call("nvrtcGetCUBINSize", program, size);
}
WEFT_EXPORT int hiprtcGetCode(Program program, char* code) { return call("nvrtcGetCUBIN", program, code); }
