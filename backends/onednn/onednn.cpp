#include "backends/onednn/library.h"
#include "weft/backend.hpp"

// Kernels of oneDNN 3 for CPU devices: products and convolutions in f32 and bf16. A provider has no device
// of its own: names, memory and queues are those of the backend that it serves.
namespace weft::onednn {
std::vector<backend::KernelRecord> own();  // made from kernels/
}  // namespace weft::onednn

namespace {

using namespace weft::backend;
using weft::onednn::library;

KernelTable& kernels() {
  static KernelTable table("onednn", {[] {
                             auto all = weft::onednn::own();
                             for (auto& record : all) record.contents = library().version.c_str();
                             return all;
                           }()});
  return table;
}

const weft_host* the_host = nullptr;

const weft_backend table = {
    .size = sizeof(weft_backend),
    .abi = WEFT_ABI,
    .name = "onednn",
    .version = "0.1.0",
    .probe =
        [](weft_probe* probe, weft_error* error) {
          return guarded(error, [&] {
            write(probe, &weft_probe::n_devices, library().reason.empty() ? 1 : 0);
            write_text(probe, &weft_probe::reason, library().reason);
            return Outcome::ok();
          });
        },
    .kernels =
        [](weft_device, const weft_kernel* const** list, uint32_t* n, weft_error* error) {
          return guarded(error, [&]() -> Outcome {
            if (!library().reason.empty()) return Outcome::fail(WEFT_UNAVAILABLE, "{}", library().reason);
            kernels().set_host(the_host);
            *list = kernels().data();
            *n = kernels().size();
            return Outcome::ok();
          });
        },
    .serves = "cpu",
};

}  // namespace

weft_code WEFT_NEGOTIATE(const weft_host* host, const weft_backend** backend, weft_error* error) {
  if (auto outcome = Host(host).speaks(); !outcome.good()) return fill(error, outcome.code, outcome.text);
  the_host = host;
  *backend = &table;
  return WEFT_OK;
}
