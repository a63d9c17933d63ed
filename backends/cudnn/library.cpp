#include "library.h"

#include <dlfcn.h>

#include <cstdlib>

namespace weft::cudnn {

using backend::Outcome;

namespace {

// Masks of -infinity, and accumulators that the kernels clear themselves.
constexpr size_t kLeastVersion = 91000;

// The file that the user names, else one on the loader's search path.
void* find(std::string& missing) {
  if (const char* own = std::getenv("WEFT_CUDNN_LIBRARY")) {
    void* file = dlopen(own, RTLD_NOW | RTLD_LOCAL);
    if (!file) missing = std::string("WEFT_CUDNN_LIBRARY can't be opened: ") + dlerror();
    return file;
  }
  void* file = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
  if (!file) missing = "libcudnn.so.9 was not found; WEFT_CUDNN_LIBRARY may name the file";
  return file;
}

Library open_library() {
  Library l;
  void* file = find(l.missing);
  if (!file) return l;
#define WEFT_LOAD(f)                                      \
  l.f = reinterpret_cast<decltype(l.f)>(dlsym(file, #f)); \
  if (!l.f) l.missing = "libcudnn.so.9 has no " #f;
  WEFT_CUDNN(WEFT_LOAD)
#undef WEFT_LOAD
  if (!l.missing.empty()) return l;
  const size_t version = l.cudnnGetVersion();
  l.version = backend::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  if (version < kLeastVersion) l.missing = "cuDNN " + l.version + " was found; 9.10 or later is wanted";
  return l;
}

}  // namespace

const Library& library() {
  static const Library& l = *new Library(open_library());  // drivers do not survive being unloaded
  return l;
}

void check(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  const std::string_view call = what;
  char last[512] = "";
  library().cudnnGetLastErrorString(last, sizeof last);
  const bool refused = status / 1000 == CUDNN_STATUS_NOT_SUPPORTED / 1000;
  throw Failure{Outcome::fail(refused ? WEFT_UNSUPPORTED : WEFT_DEVICE, "{}: {} {}",
                              call.substr(0, call.find('(')), library().cudnnGetErrorString(status), last)};
}

}  // namespace weft::cudnn
