#include "backends/native/native.h"

#include "backends/native/tiles.h"
#include "backends/reference/records.h"
#include "weft/shared/host_device.hpp"

// The CPU as fast as it goes: own kernels first, in kernels/; then elementwise ops and regions of them in
// tiles; then the shared primitives, for whatever is left.
namespace weft::native {

std::vector<backend::KernelRecord> own();  // made from kernels/

std::vector<backend::KernelRecord> records() {
  std::vector<backend::KernelRecord> all = own();
  for (const auto& list : {tile_records(), reference::records()})
    all.insert(all.end(), list.begin(), list.end());
  return all;
}

}  // namespace weft::native

namespace {

struct Native {
  static constexpr const char* kName = "native";
  static constexpr const char* kKind = "cpu";
  static const char* label() {
    static const std::string text =
        weft::backend::format("host memory, kernels for {}", weft::native::target_name());
    return text.c_str();
  }
  static constexpr const char* kNumerics = "computes in f32 and wider, keeps denormals";
  static weft::backend::KernelTable& kernels() {
    static weft::backend::KernelTable table(kName, {weft::native::records()});
    return table;
  }
};

}  // namespace

weft_code WEFT_NEGOTIATE(const weft_host* host, const weft_backend** backend, weft_error* error) {
  return weft::shared::HostDevice<Native>::negotiate(host, backend, error);
}
