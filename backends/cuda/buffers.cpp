#include "device.hpp"

// Memory: blocks of the device, pinned memory of the host, and memory of others.
namespace weft::cuda {

namespace {

Outcome no_memory(Device& d, uint64_t bytes) {
  const auto held = d.blocks.statistics();
  size_t left = 0, all = 0;
  gpu::memory_info(&left, &all);
  return Outcome::fail(
      WEFT_OUT_OF_MEMORY,
      "{} bytes are wanted; the device has {}, of which {} are free; this process holds {} and "
      "uses {} of them, the largest free block has {}",
      bytes, all, left, held.held, held.used, held.largest);
}

/// Whether this device reaches the memory of another one of this backend, which it is told to, then.
bool reaches_peer(Device& d, int other) {
  const std::lock_guard lock(d.mutex);
  const auto [at, unknown] = d.peers.emplace(other, false);
  int can = 0;
  if (unknown && gpu::set_device(d.ordinal) == gpu::kSuccess &&
      gpu::can_access_peer(&can, d.ordinal, other) == gpu::kSuccess && can) {
    const gpu::Error enabled = gpu::enable_peer(other, 0);
    at->second = enabled == gpu::kSuccess || enabled == gpu::kPeerKnown;
  }
  if (unknown) (void)gpu::get_last_error();
  return at->second;
}

bool reaches(Device& d, DLDevice there) {
  if (gpu::reaches(d.ordinal, there)) return true;
  return there.device_type == gpu::kMemory && there.device_id != d.ordinal &&
         reaches_peer(d, there.device_id);
}

}  // namespace

weft_code allocate(weft_device device, uint64_t bytes, void** handle, weft_error* error) {
  Device& d = *device_of(device);
  return on_device(d, error, [&] {
    *handle = d.blocks.allocate(bytes);
    return *handle ? Outcome::ok() : no_memory(d, bytes);
  });
}

weft_code allocate_pinned(weft_device device, uint64_t bytes, void** handle, void** address,
                          weft_error* error) {
  Device& d = *device_of(device);
  return on_device(d, error, [&]() -> Outcome {
    WEFT_GPU_TRY(gpu::allocate_host(handle, std::max<uint64_t>(bytes, 1)));
    *address = *handle;
    const std::lock_guard lock(d.mutex);
    d.foreign.emplace(*handle, true);
    return Outcome::ok();
  });
}

void free_buffer(weft_device device, void* handle) {
  Device& d = *device_of(device);
  if (!handle || d.failed) return;  // what a device that has failed held is gone
  bool pinned = false;
  {
    const std::lock_guard lock(d.mutex);
    if (const auto at = d.foreign.find(handle); at != d.foreign.end()) {
      pinned = at->second;
      d.foreign.erase(at);
      if (!pinned) return;
    }
  }
  (void)make_current(d);
  if (pinned)
    gpu::release_host(handle);
  else
    d.blocks.release(handle);
}

weft_code import_memory(weft_device device, const DLTensor* t, uint64_t, void** handle, weft_error* error) {
  Device& d = *device_of(device);
  return backend::guarded(error, [&] {
    if (!reaches(d, t->device))
      return Outcome::fail(WEFT_UNSUPPORTED, "memory of DLPack's device {}:{} is out of reach of {}",
                           static_cast<int>(t->device.device_type), t->device.device_id, name_of(d));
    *handle = static_cast<char*>(t->data) + t->byte_offset;
    const std::lock_guard lock(d.mutex);
    d.foreign.emplace(*handle, false);
    return Outcome::ok();
  });
}

uint64_t memory_free(weft_device device) {
  Device& d = *device_of(device);
  if (d.failed) return 0;
  const auto held = d.blocks.statistics();
  size_t left = 0, all = 0;
  (void)make_current(d);
  return gpu::memory_info(&left, &all) == gpu::kSuccess ? left + held.held - held.used : 0;
}

}  // namespace weft::cuda
