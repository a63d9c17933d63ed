#include <memory>

#include "../cuda/device.hpp"

namespace weft::kernels {
std::vector<backend::KernelRecord> shared();  // of backends/template
}

// Every primitive op for devices that are emulated: functions of the host, which run in a stream's order.
namespace weft::gpu {

namespace {

using namespace weft::backend;
using namespace weft::cuda;

weft_code launch(const weft_launch* l, weft_error* error) {
  Queue& q = *queue_of(l->queue);
  return on_device(q.device, error, [&]() -> Outcome {
    if (auto settled = settle(q); !settled.good()) return settled;
    note(q, l->plan->kernel->id);
    const auto kept = std::make_shared<LaunchCopy>(l, [](const weft_tensor& t) { return t.dl.data; });
    auto enqueued = outcome(enqueue_function(q.stream,
                                             [kept]() -> std::string {
                                               const Outcome ran = KernelTable::run(kept->get());
                                               return ran.good() ? "" : ran.text;
                                             }),
                            "launching");
    return enqueued.good() ? launched(q) : enqueued;
  });
}

}  // namespace

std::span<const weft_kernel* const> kernels_of_runtime(const weft_host* host) {
  static const std::vector<KernelRecord> records = [] {
    auto all = kernels::shared();
    for (KernelRecord& r : all) r.rank = -1;  // behind those in kernels/
    return all;
  }();
  static KernelTable table("emulated", {records}, launch, WEFT_KERNEL_RECORDABLE);
  table.set_host(host);
  return {table.data(), table.size()};
}

}  // namespace weft::gpu
