#pragma once
#include <tuple>

#include "device.hpp"

// How kernels are launched: their arguments are taken as the kernel declares them.
namespace weft::cuda {

/// Lets a kernel have so much dynamic shared memory, for the owner of the device's mutex. The device is told
/// when a kernel asks for more than before.
inline Outcome allow_shared(Device& device, const void* kernel, size_t bytes) {
  size_t& allowed = device.shared_allowed[kernel];
  if (bytes > allowed) {
    WEFT_GPU_TRY(gpu::allow_shared(kernel, bytes));
    allowed = bytes;
  }
  return Outcome::ok();
}

/// Enqueues a kernel, which may start while the one before it drains, on a queue that is settled.
template <class... P, class... A>
Outcome start_on(Queue& queue, Grid blocks, BlockSize block, size_t shared, void (*kernel)(P...),
                 A... arguments) {
  if (auto launched = launch_chain(queue); !launched.good()) return launched;
  const auto* address = reinterpret_cast<const void*>(kernel);
  // Without asking a block has 48 KiB, of which its static arrays take some.
  if (shared > (size_t{32} << 10)) {
    const std::lock_guard lock(queue.device.mutex);
    if (auto allowed = allow_shared(queue.device, address, shared); !allowed.good()) return allowed;
  }
  const gpu::Launch how{blocks,        block.threads, shared, queue.stream, queue.device.dependent_launch,
                        block.cluster, block.together};
  std::tuple<P...> all(static_cast<P>(arguments)...);
  return std::apply(
      [&](P&... each) {
        void* pointers[] = {&each...};
        return outcome(gpu::launch(how, address, pointers), "launching");
      },
      all);
}
template <class... P, class... A>
Outcome start(const backend::Launch& l, Grid blocks, BlockSize block, size_t shared, void (*kernel)(P...),
              A... arguments) {
  Queue& queue = queue_of(l);
  if (auto settled = settle(queue); !settled.good()) return settled;
  return start_on(queue, blocks, block, shared, kernel, arguments...);
}

/// How many clusters of a kernel run at the same time. The device is asked once.
template <class... P>
Outcome clusters_at_once(const backend::Launch& l, BlockSize block, size_t shared, void (*kernel)(P...),
                         int& n) {
  Device& device = queue_of(l).device;
  const auto* address = reinterpret_cast<const void*>(kernel);
  const std::lock_guard lock(device.mutex);
  const auto known = device.clusters_at_once.find(address);
  if (known == device.clusters_at_once.end()) {
    gpu::Launch how{};
    how.blocks.x = block.cluster, how.threads = block.threads, how.shared = shared,
    how.cluster = block.cluster;
    if (auto allowed = allow_shared(device, address, shared); !allowed.good()) return allowed;
    WEFT_GPU_TRY(gpu::clusters_at_once(&n, how, address));
    device.clusters_at_once.emplace(address, n);
    return Outcome::ok();
  }
  n = known->second;
  return Outcome::ok();
}

}  // namespace weft::cuda
