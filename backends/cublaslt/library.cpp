#include "library.h"

#include <dlfcn.h>

#include <map>
#include <mutex>

namespace weft::cublaslt {

using backend::Outcome;

namespace {

Library open_library() {
  Library l;
  void* file = nullptr;
  for (const char* name : {"libcublasLt.so.13", "libcublasLt.so.12"})
    if (!file) file = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!file) {
    l.missing = "libcublasLt.so.13 was not found";
    return l;
  }
#define WEFT_LOAD(f)                                      \
  l.f = reinterpret_cast<decltype(l.f)>(dlsym(file, #f)); \
  if (!l.f) l.missing = "libcublasLt.so has no " #f;
  WEFT_CUBLASLT(WEFT_LOAD)
#undef WEFT_LOAD
  if (!l.missing.empty()) return l;
  const size_t version = l.cublasLtGetVersion();
  l.version = backend::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  return l;
}

}  // namespace

const Library& library() {
  static const Library& l = *new Library(open_library());  // drivers do not survive being unloaded
  return l;
}

// Handles cost tens of milliseconds each, and are kept until the process ends.
Outcome handle_of(int device, cublasLtHandle_t* handle) {
  static std::mutex& mutex = *new std::mutex;
  static auto& handles = *new std::map<int, cublasLtHandle_t>;
  const std::lock_guard lock(mutex);
  cublasLtHandle_t& found = handles[device];
  if (!found) WEFT_LT_TRY(cublasLtCreate(&found));
  *handle = found;
  return Outcome::ok();
}

Outcome outcome(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return Outcome::ok();
  return Outcome::fail(
      status == CUBLAS_STATUS_NOT_SUPPORTED ? WEFT_UNSUPPORTED : WEFT_DEVICE, "{}: cuBLAS status {}",
      std::string_view(what).substr(0, std::string_view(what).find('(')), static_cast<int>(status));
}

}  // namespace weft::cublaslt
