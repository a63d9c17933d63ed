#include <cstdlib>
#include <memory>

#include "device.h"

namespace weft::opencl {
namespace {

uint64_t fnv1a(const std::string& text, uint64_t hash) {
  for (const unsigned char c : text) hash = (hash ^ c) * 1099511628211u;
  return hash;
}
/// Two different 64-bit hashes of text, device, driver and options.
std::string cache_key(const weft_device_s& d, const weft_source& s) {
  const std::string all = d.identity + '\n' + s.text;
  char key[64];
  std::snprintf(key, sizeof key, "opencl-%016llx%016llx",
                static_cast<unsigned long long>(fnv1a(all, 14695981039346656037u)),
                static_cast<unsigned long long>(fnv1a(all + '\n', 0x9E3779B97F4A7C15u)));
  return key;
}

std::string build_log(const weft_device_s& d, cl_program program) {
  size_t n = 0;
  library().clGetProgramBuildInfo(program, d.id, CL_PROGRAM_BUILD_LOG, 0, nullptr, &n);
  std::string log(n, '\0');
  library().clGetProgramBuildInfo(program, d.id, CL_PROGRAM_BUILD_LOG, n, log.data(), nullptr);
  return log.c_str();
}

/// Whether the host's cache gets the binary. PoCL has it on disk itself; it gives it away where it is asked
/// to.
bool gives_binaries(const weft_device_s& d) {
  return host()->cache_put && (!d.keeps_binaries || std::getenv("WEFT_KEEP_BINARIES"));
}

/// The built program from the host's cache, or null.
cl_program from_cache(weft_device_s& d, const std::string& key) {
  if (!host()->cache_get) return nullptr;
  const uint64_t n = host()->cache_get(key.c_str(), nullptr, 0);
  if (n == 0) return nullptr;
  std::vector<unsigned char> bytes(n);
  if (host()->cache_get(key.c_str(), bytes.data(), n) != n) return nullptr;
  const unsigned char* binary = bytes.data();
  const size_t size = bytes.size();
  cl_int code = CL_SUCCESS, status = CL_SUCCESS;
  cl_program program =
      library().clCreateProgramWithBinary(d.context, 1, &d.id, &size, &binary, &status, &code);
  if (code != CL_SUCCESS) return nullptr;
  if (status == CL_SUCCESS &&
      library().clBuildProgram(program, 1, &d.id, d.build_options.c_str(), nullptr, nullptr) == CL_SUCCESS)
    return program;
  library().clReleaseProgram(program);  // a stale binary is no error: the text is compiled again
  return nullptr;
}

void to_cache(const weft_device_s& d, const std::string& key, cl_program program) {
  if (!gives_binaries(d)) return;
  size_t n = 0;
  if (library().clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof n, &n, nullptr) != CL_SUCCESS ||
      n == 0)
    return;
  std::vector<unsigned char> bytes(n);
  unsigned char* binary = bytes.data();
  if (library().clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary, nullptr) != CL_SUCCESS)
    return;
  host()->cache_put(key.c_str(), bytes.data(), n);
}

weft_code build(weft_device_s& d, const weft_source& s, cl_program* out, weft_error* error) {
  cl_int code = CL_SUCCESS;
  cl_program program =
      library().clCreateProgramWithSource(d.context, 1, const_cast<const char**>(&s.text), nullptr, &code);
  if (code != CL_SUCCESS)
    return fail(error, WEFT_DEVICE, "opencl:%u: clCreateProgramWithSource: %s", d.ordinal,
                code_text(code).c_str());
  code = library().clBuildProgram(program, 1, &d.id, d.build_options.c_str(), nullptr, nullptr);
  if (code == CL_SUCCESS) return *out = program, WEFT_OK;
  fail(error, WEFT_INVALID_ARGUMENT, "opencl:%u: compiling %s: %s: %s", d.ordinal, s.entry,
       code_text(code).c_str(), build_log(d, program).c_str());
  library().clReleaseProgram(program);
  return WEFT_INVALID_ARGUMENT;
}

/// A recently built program with a reference for the caller, or null.
cl_program recent(weft_device_s& d, const std::string& key) {
  std::lock_guard lock(d.mutex);
  for (const auto& [known_as, program] : d.recent)
    if (known_as == key) return library().clRetainProgram(program), program;
  return nullptr;
}
/// Keeps its own reference. Several threads build at once, and each comes back for the other functions.
void keep_recent(weft_device_s& d, const std::string& key, cl_program program) {
  constexpr size_t kMost = 64;
  library().clRetainProgram(program);
  std::lock_guard lock(d.mutex);
  d.recent.emplace_back(key, program);
  if (d.recent.size() <= kMost) return;
  library().clReleaseProgram(d.recent.front().second);
  d.recent.pop_front();
}

/// The program of a text, with a reference for the caller: a recent one, from the cache, or built.
weft_code program_of(weft_device_s& d, const weft_source& s, cl_program* out, weft_error* error) {
  const std::string key = cache_key(d, s);
  if ((*out = recent(d, key))) return WEFT_OK;
  if (!(*out = from_cache(d, key))) {
    if (const weft_code code = build(d, s, out, error); code != WEFT_OK) return code;
    to_cache(d, key, *out);
  }
  keep_recent(d, key, *out);
  return WEFT_OK;
}

}  // namespace

weft_code compile(weft_device device, const weft_source* source, weft_module* out, weft_error* error) {
  cl_program program = nullptr;
  if (const weft_code code = program_of(*device, *source, &program, error); code != WEFT_OK) return code;
  cl_int code = CL_SUCCESS;
  cl_kernel kernel = library().clCreateKernel(program, source->entry, &code);
  if (code != CL_SUCCESS) {
    library().clReleaseProgram(program);
    return fail(error, WEFT_INVALID_ARGUMENT, "opencl:%u: no kernel %s in the text: %s", device->ordinal,
                source->entry, code_text(code).c_str());
  }
  *out = new weft_module_s{device, program, kernel, source->entry, {}};
  std::lock_guard lock(device->mutex);
  device->modules.insert(*out);
  return WEFT_OK;
}

void release_module(weft_module m) {
  {
    std::lock_guard lock(m->device->mutex);
    m->device->modules.erase(m);
  }
  library().clReleaseKernel(m->kernel);
  library().clReleaseProgram(m->program);
  delete m;
}

}  // namespace weft::opencl
