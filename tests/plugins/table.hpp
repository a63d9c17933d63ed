#pragma once
#include "weft/shared/host_device.hpp"
#include "weft/shared/ops/elementwise.hpp"

// A good backend to start from, with one kernel: each plug-in of this folder takes its table and damages one
// thing.
namespace plugin {

template <class Name>
struct Good {
  static constexpr const char* kName = Name::value;
  static constexpr const char* kKind = "cpu";
  static const char* label() { return "a plug-in of the tests"; }
  static constexpr const char* kNumerics = "computes in double, rounds each result once";
  static weft::backend::KernelTable& kernels() {
    using namespace weft::shared;
    static const std::array records = {detail::arithmetic_record<fn::Add>("add")};
    static weft::backend::KernelTable table(kName, {records});
    return table;
  }
};

template <class Name>
const weft_backend& table(const weft_host* host) {
  const weft_backend* good = nullptr;
  weft_error error{.size = sizeof error, .text = {}};
  (void)weft::shared::HostDevice<Good<Name>>::negotiate(host, &good, &error);
  return *good;
}

}  // namespace plugin

#define WEFT_TEST_PLUGIN(name_text)                 \
  struct PluginName {                               \
    static constexpr const char* value = name_text; \
  }
