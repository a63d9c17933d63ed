#include "backends/onednn/library.h"

#include <dlfcn.h>

#include <cstdlib>

namespace weft::onednn {
namespace {

// The file that the user names; else the loader's search path; else the library beside the headers.
void* find(std::string& reason) {
  if (const char* own = std::getenv("WEFT_ONEDNN_LIBRARY")) {
    void* handle = dlopen(own, RTLD_NOW | RTLD_LOCAL);
    if (!handle) reason = std::string("WEFT_ONEDNN_LIBRARY can't be opened: ") + dlerror();
    return handle;
  }
  for (const char* name : {"libdnnl.so.3", WEFT_ONEDNN_BESIDE})
    if (void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return handle;
  reason = "libdnnl.so.3 not found; install PyPI's onednn-cpu-gomp, and name the file in WEFT_ONEDNN_LIBRARY";
  return nullptr;
}

// Only with a runtime whose number of threads can be set for each call can the host keep control of threads.
void look_at(Library& l, void* handle) {
  const dnnl_version_t* v = l.dnnl_version();
  l.version =
      "oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
  if (v->major != 3) {
    l.reason = l.version + " found; 3.x is wanted";
  } else if (v->cpu_runtime == DNNL_RUNTIME_OMP) {
    l.omp_get_max_threads =
        reinterpret_cast<decltype(l.omp_get_max_threads)>(dlsym(handle, "omp_get_max_threads"));
    l.omp_set_num_threads =
        reinterpret_cast<decltype(l.omp_set_num_threads)>(dlsym(handle, "omp_set_num_threads"));
    if (!l.omp_get_max_threads || !l.omp_set_num_threads)
      l.reason = l.version + " comes without OpenMP's runtime";
  } else if (v->cpu_runtime != DNNL_RUNTIME_SEQ) {
    l.reason = l.version + " is built for another threading runtime; OpenMP or none is wanted";
  }
}

Library open() {
  Library l;
  void* handle = find(l.reason);
  if (!handle) return l;
#define WEFT_ONEDNN_LOAD(f)                                 \
  l.f = reinterpret_cast<decltype(l.f)>(dlsym(handle, #f)); \
  if (!l.f && l.reason.empty()) l.reason = "libdnnl has no function " #f;
  WEFT_ONEDNN_FUNCTIONS(WEFT_ONEDNN_LOAD)
#undef WEFT_ONEDNN_LOAD
  if (l.reason.empty()) look_at(l, handle);
  // The bf16 instructions, AMX's among them, flush subnormal operands to zero. Without them oneDNN computes
  // bf16 in f32, correctly. Fails if the process has used the library before, with its own choice.
  if (l.reason.empty() && l.dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx512_core_vnni) != dnnl_success)
    l.reason = l.version + " runs in this process already, with instructions that lose subnormal numbers";
  if (l.reason.empty() && l.dnnl_engine_create(&l.engine, dnnl_cpu, 0) != dnnl_success)
    l.reason = l.version + " has no engine for this processor";
  return l;
}

}  // namespace

const Library& library() {
  static const Library& l = *new Library(open());  // never destroyed: plans may end while the process does
  return l;
}

}  // namespace weft::onednn
