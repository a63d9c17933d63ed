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
  static const char* version() { return made_by(); }
  static std::vector<KernelRecord> records() { return weft::kernels::own(); }
  static Outcome attach(weft_device) { return Outcome::ok(); }
  static void detach(weft_device) {}
};

}  // namespace

Outcome stream_of(const Launch& l, void** to) { return Provider<Triton>::stream(l, to); }

}  // namespace weft::triton

weft_code WEFT_NEGOTIATE(const weft_host* host, const weft_backend** backend, weft_error* error) {
  return weft::backend::Provider<weft::triton::Triton>::negotiate(host, backend, error);
}
