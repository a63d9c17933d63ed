#include <atomic>

#include "../cuda/collect.hpp"
#include "../cuda/kernels.hpp"
#include "weft/backend.hpp"

// The kernels of the CUDA backend for CPU devices: each block's threads run one after another and hand over
// where they wait for each other (threads.hpp). For tests where there is no GPU; slow.
namespace {

using namespace weft::backend;
using namespace weft::cuda;

std::atomic<const weft_host*> the_host = nullptr;

KernelTable& kernels() {
  static KernelTable table("emulated", {own_kernels()});
  return table;
}

weft_code probe(weft_probe* p, weft_error*) {
  write(p, &weft_probe::n_devices, 1);
  return WEFT_OK;
}

weft_code list_kernels(weft_device, const weft_kernel* const** list, uint32_t* n, weft_error* error) {
  return guarded(error, [&] {
    kernels().set_host(the_host);
    *list = kernels().data();
    *n = kernels().size();
    return Outcome::ok();
  });
}

constexpr weft_backend kProvider = {.size = sizeof(weft_backend),
                                    .abi = WEFT_ABI,
                                    .name = "emulated",
                                    .version = "0.1.0",
                                    .probe = probe,
                                    .kernels = list_kernels,
                                    .serves = "cpu"};

}  // namespace

namespace weft::cuda {

Queue& queue_of(const Launch&) {
  static Queue& queue = *new Queue;
  return queue;
}
Outcome settle_locked(Queue& q) {
  if (!q.collected) return Outcome::ok();
  return std::exchange(q.collected, nullptr)->start(q);
}

}  // namespace weft::cuda

weft_code WEFT_NEGOTIATE(const weft_host* host, const weft_backend** backend, weft_error* error) {
  return guarded(error, [&]() -> Outcome {
    if (auto outcome = Host(host).speaks(); !outcome.good()) return outcome;
    the_host = host;
    *backend = &kProvider;
    return Outcome::ok();
  });
}
