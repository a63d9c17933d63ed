#include "backends/onednn/library.h"
#include "weft/backend/provider.hpp"

// Kernels of oneDNN 3 for CPU devices: products and convolutions in f32 and bf16.
namespace weft::onednn {
std::vector<backend::KernelRecord> own();  // made from kernels/

struct Onednn {
  static constexpr const char *kName = "onednn", *kServes = "cpu";
  static const std::string& missing() { return library().reason; }
  static const char* version() { return library().version.c_str(); }
  static std::vector<backend::KernelRecord> records() { return own(); }
};

}  // namespace weft::onednn

weft_code WEFT_NEGOTIATE(const weft_host* host, const weft_backend** backend, weft_error* error) {
  return weft::backend::Provider<weft::onednn::Onednn>::negotiate(host, backend, error);
}
