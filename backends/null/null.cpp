#include <array>

#include "weft/shared/host_device.hpp"

// Accepts every call and computes nothing: the time of a run is Weft's own overhead.
namespace {

const std::array kRecords = {weft::backend::KernelRecord{
    .op = "*",
    .variant = "nothing",
    .launch = [](const weft::backend::Launch&) { return weft::backend::Outcome::ok(); },
    .determinism = WEFT_DETERMINISM_DEVICES,
    .accumulates = true,
    .in_place = true,
    .any_layout = true,
    .reads_all = true,
}};

struct Null {
  static constexpr const char* kName = "null";
  static constexpr const char* kKind = "null";
  static constexpr uint64_t kDTypes = 0;  // so nothing falls back to it
  static const char* label() { return "computes nothing"; }
  static constexpr const char* kNumerics = "none: outputs keep what their memory held";
  static weft::backend::KernelTable& kernels() {
    static weft::backend::KernelTable table(kName, {kRecords});
    return table;
  }
};

}  // namespace

weft_code WEFT_NEGOTIATE(const weft_host* host, const weft_backend** backend, weft_error* error) {
  return weft::shared::HostDevice<Null>::negotiate(host, backend, error);
}
