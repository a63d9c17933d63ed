#include "device.h"

#include <algorithm>
#include <cctype>
#include <memory>

#include "weft/backend/base.hpp"

namespace weft::opencl {
namespace {

// Indices of weft/dtype.h, which backend.h speaks of in `dtypes`.
enum DTypeBit : uint64_t {
  kF64 = 1u << 0,
  // All others. f16 and bf16 are stored so and computed in f32.
  kAlways = (1u << 13) - 1 - kF64,
};

bool correct_division(cl_device_id id) {
  return device_info<cl_device_fp_config>(id, CL_DEVICE_SINGLE_FP_CONFIG) &
         CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
}
std::string numerics(cl_device_id id) {
  const auto config = device_info<cl_device_fp_config>(id, CL_DEVICE_SINGLE_FP_CONFIG);
  return std::string(config & CL_FP_DENORM ? "denormals kept" : "denormals flushed") +
         (correct_division(id) ? ", correctly rounded division and sqrt"
                               : ", division within 2.5 ulp, sqrt 3") +
         ", exp and log within 3 ulp";
}

// A CPU runs the items of a group one after another. For other devices, extensions tell the width.
uint32_t subgroup(cl_device_id id) {
  if (device_info<cl_device_type>(id, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) return 1;
  constexpr cl_device_info kWarpSizeNv = 0x4003, kWavefrontWidthAmd = 0x4043;
  const std::string extensions = device_text(id, CL_DEVICE_EXTENSIONS);
  const auto has = [&](const char* name) { return extensions.find(name) != std::string::npos; };
  if (has("cl_nv_device_attribute_query")) return device_info<cl_uint>(id, kWarpSizeNv);
  if (has("cl_amd_device_attribute_query")) return device_info<cl_uint>(id, kWavefrontWidthAmd);
  return 0;
}

void write_capability(cl_device_id id, uint32_t ordinal, weft_capability* c) {
  using C = weft_capability;
  using backend::write, backend::write_text;
  write(c, &C::available, 1);
  write_text(c, &C::kind, "opencl");
  write_text(c, &C::label, device_text(id, CL_DEVICE_NAME));
  write(c, &C::ordinal, ordinal);
  write(c, &C::queue_kind, WEFT_QUEUE_ORDERED);
  write(c, &C::host_memory, 0);
  write(c, &C::units, device_info<cl_uint>(id, CL_DEVICE_MAX_COMPUTE_UNITS));
  write(c, &C::dtypes,
        kAlways | (device_info<cl_device_fp_config>(id, CL_DEVICE_DOUBLE_FP_CONFIG) ? uint64_t{kF64} : 0));
  write(c, &C::memory, device_info<cl_ulong>(id, CL_DEVICE_GLOBAL_MEM_SIZE));
  write(c, &C::max_buffer, device_info<cl_ulong>(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE));
  write(c, &C::max_binding, device_info<cl_ulong>(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE));
  write(c, &C::offset_alignment, 1);  // a text adds the offset itself, in elements
  write(c, &C::read_write_buffer, 1);
  write(c, &C::dlpack, kDLOpenCL);
  write(c, &C::subgroup, subgroup(id));
  write(c, &C::group_items, static_cast<uint32_t>(device_info<size_t>(id, CL_DEVICE_MAX_WORK_GROUP_SIZE)));
  write(c, &C::shared_bytes, static_cast<uint32_t>(device_info<cl_ulong>(id, CL_DEVICE_LOCAL_MEM_SIZE)));
  write_text(c, &C::dialect, "opencl_c");
  write_text(c, &C::numerics, numerics(id));
}

std::string plain(const std::string& text) {
  std::string out;
  for (const char c : text) out += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return out;
}

}  // namespace

weft_code probe(weft_probe* p, weft_error*) {
  const Library& l = library();
  backend::write(p, &weft_probe::n_devices, l.devices.size());
  if (l.devices.empty()) backend::write_text(p, &weft_probe::reason, l.reason);
  return WEFT_OK;
}

weft_code describe(uint32_t ordinal, weft_capability* capability, weft_error* error) {
  const Library& l = library();
  if (ordinal >= l.devices.size())
    return fail(error, WEFT_UNAVAILABLE, "opencl:%u: got %zu devices%s%s", ordinal, l.devices.size(),
                l.reason.empty() ? "" : "; ", l.reason.c_str());
  const cl_device_id id = l.devices[ordinal];
  if (!device_info<cl_bool>(id, CL_DEVICE_AVAILABLE) ||
      !device_info<cl_bool>(id, CL_DEVICE_COMPILER_AVAILABLE))
    return fail(error, WEFT_UNAVAILABLE, "opencl:%u: %s is not available or has no compiler", ordinal,
                device_text(id, CL_DEVICE_NAME).c_str());
  write_capability(id, ordinal, capability);
  return WEFT_OK;
}

weft_code open_device(uint32_t ordinal, weft_device* out, weft_capability* capability, weft_error* error) {
  if (const weft_code code = describe(ordinal, capability, error); code != WEFT_OK) return code;
  const Library& l = library();
  auto d = std::make_unique<weft_device_s>();
  d->ordinal = ordinal;
  d->id = l.devices[ordinal];
  cl_int code = CL_SUCCESS;
  d->context = l.clCreateContext(nullptr, 1, &d->id, nullptr, nullptr, &code);
  if (code != CL_SUCCESS)
    return fail(error, WEFT_UNAVAILABLE, "opencl:%u: clCreateContext: %s", ordinal, code_text(code).c_str());
  // Without the option, OpenCL C allows f32 division an error of 2.5 ulp even where the device can do better.
  d->build_options =
      correct_division(d->id) ? "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt" : "-cl-std=CL1.2";
  d->identity = plain(device_text(d->id, CL_DEVICE_NAME) + "." + device_text(d->id, CL_DRIVER_VERSION) + "." +
                      device_text(d->id, CL_DEVICE_VERSION) + "." + d->build_options);
  const std::string version = device_text(d->id, CL_DEVICE_VERSION);
  d->keeps_binaries = version.find("pocl") != version.npos || version.find("PoCL") != version.npos;
  d->command_buffers = command_buffers(d->id);
  *out = d.release();
  return WEFT_OK;
}

void close_device(weft_device d) {
  if (d->mapping) library().clReleaseCommandQueue(d->mapping);
  while (!d->modules.empty()) release_module(*d->modules.begin());
  for (const auto& entry : d->recent) library().clReleaseProgram(entry.second);
  library().clReleaseContext(d->context);
  delete d;
}

weft_code allocate(weft_device d, uint64_t bytes, void** handle, weft_error* error) {
  cl_int code = CL_SUCCESS;
  const size_t size = static_cast<size_t>(std::max<uint64_t>(bytes, 1));  // OpenCL has no empty buffers
  cl_mem memory = library().clCreateBuffer(d->context, CL_MEM_READ_WRITE, size, nullptr, &code);
  if (code != CL_SUCCESS)
    return fail(error, WEFT_OUT_OF_MEMORY, "opencl:%u: clCreateBuffer of %llu bytes: %s", d->ordinal,
                static_cast<unsigned long long>(bytes), code_text(code).c_str());
  *handle = memory;
  return WEFT_OK;
}

// A buffer that stays mapped: drivers give it memory that the device can access directly.
weft_code allocate_pinned(weft_device d, uint64_t bytes, void** handle, void** address, weft_error* error) {
  const Library& l = library();
  const size_t size = static_cast<size_t>(std::max<uint64_t>(bytes, 1));
  const std::lock_guard lock(d->mutex);
  cl_int code = CL_SUCCESS;
  if (!d->mapping) d->mapping = l.clCreateCommandQueue(d->context, d->id, 0, &code);
  cl_mem memory = nullptr;
  if (code == CL_SUCCESS)
    memory = l.clCreateBuffer(d->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, size, nullptr, &code);
  if (code == CL_SUCCESS)
    *address = l.clEnqueueMapBuffer(d->mapping, memory, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, size, 0,
                                    nullptr, nullptr, &code);
  if (code != CL_SUCCESS) {
    if (memory) l.clReleaseMemObject(memory);
    return fail(error, WEFT_OUT_OF_MEMORY, "opencl:%u: pinned memory of %llu bytes: %s", d->ordinal,
                static_cast<unsigned long long>(bytes), code_text(code).c_str());
  }
  d->pinned[*handle = memory] = static_cast<char*>(*address);
  return WEFT_OK;
}

// If device and host share memory, a buffer may have any address.
weft_code import_memory(weft_device d, const DLTensor* t, uint64_t bytes, void** handle, weft_error* error) {
  const bool own =
      t->device.device_type == kDLOpenCL && t->device.device_id == static_cast<int32_t>(d->ordinal);
  if (own && t->byte_offset == 0) {
    library().clRetainMemObject(static_cast<cl_mem>(*handle = t->data));
    return WEFT_OK;
  }
  if (t->device.device_type != kDLCPU)
    return fail(error, WEFT_UNSUPPORTED, "opencl:%u: memory of DLPack's device type %d is out of reach",
                d->ordinal, static_cast<int>(t->device.device_type));
  if (!device_info<cl_bool>(d->id, CL_DEVICE_HOST_UNIFIED_MEMORY))
    return fail(error, WEFT_UNSUPPORTED, "opencl:%u: the device does not share the host's memory",
                d->ordinal);
  cl_int code = CL_SUCCESS;
  *handle = library().clCreateBuffer(d->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                                     static_cast<size_t>(bytes), static_cast<char*>(t->data) + t->byte_offset,
                                     &code);
  if (code == CL_SUCCESS) return WEFT_OK;
  return fail(error, WEFT_UNSUPPORTED, "opencl:%u: a buffer of %llu bytes of the host's: %s", d->ordinal,
              static_cast<unsigned long long>(bytes), code_text(code).c_str());
}

weft_code native(weft_device d, weft_queue q, const char* name, void** object, weft_error* error) {
  const std::string_view wanted = name;
  if (!q && wanted == "opencl.context") return *object = d->context, WEFT_OK;
  if (!q && wanted == "opencl.device") return *object = d->id, WEFT_OK;
  if (q && wanted == "opencl.queue") return *object = q->queue, WEFT_OK;
  return fail(
      error, WEFT_UNSUPPORTED,
      "opencl:%u: there is no %s; a device has opencl.context and opencl.device, a queue opencl.queue",
      d->ordinal, name);
}

char* pinned_address(weft_device d, void* handle) {
  const std::lock_guard lock(d->mutex);
  const auto at = d->pinned.find(handle);
  return at == d->pinned.end() ? nullptr : at->second;
}

void free_buffer(weft_device d, void* handle) {
  if (!handle) return;
  {
    const std::lock_guard lock(d->mutex);
    if (const auto at = d->pinned.find(handle); at != d->pinned.end()) {
      library().clEnqueueUnmapMemObject(d->mapping, static_cast<cl_mem>(handle), at->second, 0, nullptr,
                                        nullptr);
      library().clFinish(d->mapping);
      d->pinned.erase(at);
    }
  }
  library().clReleaseMemObject(static_cast<cl_mem>(handle));
}

}  // namespace weft::opencl
