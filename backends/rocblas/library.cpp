#include "library.h"

#include <dlfcn.h>

namespace weft::rocblas {

using backend::Outcome;

namespace {

Library open_library() {
  Library l{};
  void* file = nullptr;
  for (const char* name : {"librocblas.so.5", "librocblas.so.4", "librocblas.so"})
    if (!file) file = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!file) {
    l.missing = "librocblas.so.5 was not found";
    return l;
  }
#define WEFT_LOAD(f)                                      \
  l.f = reinterpret_cast<decltype(l.f)>(dlsym(file, #f)); \
  if (!l.f) l.missing = "librocblas.so has no " #f
  WEFT_LOAD(rocblas_create_handle);
  WEFT_LOAD(rocblas_destroy_handle);
  WEFT_LOAD(rocblas_set_stream);
  WEFT_LOAD(rocblas_set_workspace);
  WEFT_LOAD(rocblas_set_atomics_mode);
  WEFT_LOAD(rocblas_get_version_string);
  WEFT_LOAD(rocblas_gemm_strided_batched_ex);
#undef WEFT_LOAD
  char text[128] = "unknown";
  if (l.missing.empty()) l.rocblas_get_version_string(text, sizeof text);
  l.version = text;
  return l;
}

}  // namespace

const Library& library() {
  static const Library& l = *new Library(open_library());  // drivers do not survive being unloaded
  return l;
}

Outcome outcome(Status status, const char* what) {
  if (status == kStatusSuccess) return Outcome::ok();
  return Outcome::fail(
      status == kStatusNotImplemented ? WEFT_UNSUPPORTED : WEFT_DEVICE, "{}: rocBLAS status {}",
      std::string_view(what).substr(0, std::string_view(what).find('(')), static_cast<int>(status));
}

}  // namespace weft::rocblas
