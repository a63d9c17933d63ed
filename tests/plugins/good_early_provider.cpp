#include "weft/backend.hpp"

// A provider without kernels, for the device of good_version_1, which may be loaded after it.
namespace {

using namespace weft::backend;

const weft_backend table = {
    .size = sizeof(weft_backend),
    .abi = WEFT_ABI,
    .name = "good_early_provider",
    .version = "1",
    .probe =
        [](weft_probe* probe, weft_error*) {
          write(probe, &weft_probe::n_devices, 1);
          return weft_code{WEFT_OK};
        },
    .kernels =
        [](weft_device, const weft_kernel* const** list, uint32_t* n, weft_error*) {
          *list = nullptr, *n = 0;
          return weft_code{WEFT_OK};
        },
    .serves = "one",
};

}  // namespace

weft_code weft_negotiate(const weft_host* host, const weft_backend** backend, weft_error* error) {
  if (auto outcome = Host(host).speaks(); !outcome.good()) return fill(error, outcome.code, outcome.text);
  *backend = &table;
  return WEFT_OK;
}
