#include "cubin.h"
#include "weft/backend/provider.hpp"

// Kernels that are written in Triton, for CUDA devices, without Python: compile.py has compiled them.
namespace weft::kernels {
std::vector<backend::KernelRecord> own();  // made from kernels/
}  // namespace weft::kernels

namespace weft::triton {
namespace {

using namespace backend;

struct Triton {
  static constexpr const char *kName = "triton", *kServes = "cuda", *kStream = "cuda.stream";
  static const std::string& missing() {
    static const std::string none;  // the kernels are in this file
    return none;
  }
  static KernelTable& kernels() {
    static KernelTable table("triton", {[] {
                               auto all = weft::kernels::own();
                               for (auto& record : all) record.contents = made_by();
                               return all;
                             }()},
                             &KernelTable::launch_now, WEFT_KERNEL_RECORDABLE);
    return table;
  }
  static Outcome attach(weft_device) { return Outcome::ok(); }
  static void detach(weft_device) {}
};

}  // namespace

Outcome stream_of(const Launch& l, void** to) { return Provider<Triton>::stream(l, to); }

}  // namespace weft::triton

weft_code WEFT_NEGOTIATE(const weft_host* host, const weft_backend** backend, weft_error* error) {
  return weft::backend::Provider<weft::triton::Triton>::negotiate(host, backend, error);
}
