#include "backends/reference/records.h"
#include "weft/shared/host_device.hpp"
#include "weft/shared/primitives.hpp"

// The oracle: the shared primitives on host memory, one call at a time. Slow, simple, accumulates in double.
namespace weft::reference {
std::vector<backend::KernelRecord> records() { return shared::primitives(); }
}  // namespace weft::reference

namespace {

struct Reference {
  static constexpr const char* kName = "reference";
  static constexpr const char* kKind = "cpu";
  static constexpr uint32_t kRank = 1;
  static const char* label() { return "host memory, reference kernels"; }
  static constexpr const char* kNumerics = "computes in double, rounds each result once, keeps denormals";
  static weft::backend::KernelTable& kernels() {
    static weft::backend::KernelTable table(kName, {weft::reference::records()});
    return table;
  }
};

}  // namespace

weft_code WEFT_NEGOTIATE(const weft_host* host, const weft_backend** backend, weft_error* error) {
  return weft::shared::HostDevice<Reference>::negotiate(host, backend, error);
}
