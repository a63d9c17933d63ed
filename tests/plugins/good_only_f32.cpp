#include "weft/shared/host_device.hpp"
#include "weft/shared/ops/elementwise.hpp"

// A device of one dtype, as small accelerators are: sums and products of f32.
namespace {

using namespace weft::backend;
namespace shared = weft::shared;

template <class F>
KernelRecord only_f32(const char* op) {
  static const KernelRecord any = shared::detail::arithmetic_record<F>(op);
  KernelRecord record = any;
  record.accepts = [](const OpCall& c) -> Support {
    for (uint32_t i = 0; i < c.n_inputs(); ++i)
      if (c.input(i).dtype() != weft::DType::f32)
        return Support::no("computes in f32 alone, got {}", c.input(i).dtype());
    return any.accepts(c);
  };
  return record;
}

struct Device {
  static constexpr const char* kName = "good_only_f32";
  static constexpr const char* kKind = "cpu";
  static const char* label() { return "a device of f32 alone"; }
  static constexpr const char* kNumerics = "computes in double, rounds each result once";
  static KernelTable& kernels() {
    static const std::array records = {only_f32<shared::fn::Add>("add"), only_f32<shared::fn::Mul>("mul")};
    static KernelTable table(kName, {records});
    return table;
  }
};

}  // namespace

weft_code weft_negotiate(const weft_host* host, const weft_backend** backend, weft_error* error) {
  return shared::HostDevice<Device>::negotiate(host, backend, error);
}
