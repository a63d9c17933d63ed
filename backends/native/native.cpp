#include "backends/native/native.h"

#include "backends/reference/records.h"
#include "weft/shared/host_device.hpp"

// The fast CPU backend: own kernels first, in kernels/; then elementwise ops and regions of them in tiles;
// then the shared primitives for everything else.
namespace {

struct Native {
  static constexpr const char* kName = "native";
  static constexpr const char* kKind = "cpu";
  static constexpr uint32_t kRank = 2;  // the fastest for the CPU
  static const char* label() {
    static const std::string text =
        weft::backend::format("host memory, kernels for {}", weft::native::target_name());
    return text.c_str();
  }
  static constexpr const char* kNumerics = "computes in f32 and wider, keeps denormals";
  static weft::backend::KernelTable& kernels() {
    static weft::backend::KernelTable table(
        kName, {weft::native::own(), weft::native::tile_records(), weft::reference::records()});
    return table;
  }
};

}  // namespace

weft_code WEFT_NEGOTIATE(const weft_host* host, const weft_backend** backend, weft_error* error) {
  return weft::shared::HostDevice<Native>::negotiate(host, backend, error);
}
