#include "weft/backend/provider.hpp"

// Multi-head attention by the kernels of FlashAttention-2, for CUDA devices.
namespace weft::kernels {
std::vector<backend::KernelRecord> own();  // made from kernels/
}  // namespace weft::kernels

namespace weft::mha {
namespace {

using namespace backend;

struct Mha {
  static constexpr const char *kName = "mha", *kServes = "cuda", *kStream = "cuda.stream";
  static const std::string& missing() {
    static const std::string none;  // the kernels are in this file
    return none;
  }
  static const char* version() { return "flash-attn " WEFT_FLASH_ATTN_VERSION; }
  static std::vector<KernelRecord> records() { return weft::kernels::own(); }
  static Outcome attach(weft_device) { return Outcome::ok(); }
  static void detach(weft_device) {}
};

}  // namespace

Outcome stream_of(const Launch& l, void** to) { return Provider<Mha>::stream(l, to); }

}  // namespace weft::mha

weft_code WEFT_NEGOTIATE(const weft_host* host, const weft_backend** backend, weft_error* error) {
  return weft::backend::Provider<weft::mha::Mha>::negotiate(host, backend, error);
}
