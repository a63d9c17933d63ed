#include "backends/native/native.h"
#include "backends/reference/records.h"
#include "weft/shared/host_device.hpp"

// einsum of many operands in the cheapest order, found as PyPI's opt_einsum does; everything else by the
// shared primitives. native has the same kernel; this backend is for comparing it alone.
namespace weft::native {
extern const backend::KernelRecord einsum_pairs;
}

namespace {

struct OptEinsum {
  static constexpr const char* kName = "opt_einsum";
  static constexpr const char* kKind = "cpu";
  static const char* label() { return "host memory, contraction orders as PyPI's opt_einsum"; }
  static constexpr const char* kNumerics = "computes in f32 and wider, keeps denormals";
  static weft::backend::KernelTable& kernels() {
    static weft::backend::KernelTable table(
        kName, {std::span(&weft::native::einsum_pairs, 1), weft::reference::records()});
    return table;
  }
};

}  // namespace

weft_code WEFT_NEGOTIATE(const weft_host* host, const weft_backend** backend, weft_error* error) {
  return weft::shared::HostDevice<OptEinsum>::negotiate(host, backend, error);
}
