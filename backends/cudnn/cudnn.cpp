#include "served.h"
#include "weft/backend/provider.hpp"

// Attention, convolutions and norms by cuDNN 9, for CUDA devices.
namespace weft::kernels {
std::vector<backend::KernelRecord> own();  // made from kernels/
}  // namespace weft::kernels

namespace weft::cudnn {
namespace {

using namespace backend;

struct Cudnn {
  static constexpr const char *kName = "cudnn", *kServes = "cuda", *kStream = "cuda.stream";
  static const std::string& missing() { return library().missing; }
  static const char* version() { return library().version.c_str(); }
  static std::vector<KernelRecord> records() { return weft::kernels::own(); }
  static Outcome attach(weft_device) { return remember_device(); }
  static void detach(weft_device) { forget_device(); }
};

}  // namespace

Outcome stream_of(const Launch& l, void** to) { return Provider<Cudnn>::stream(l, to); }

}  // namespace weft::cudnn

weft_code WEFT_NEGOTIATE(const weft_host* host, const weft_backend** backend, weft_error* error) {
  return weft::backend::Provider<weft::cudnn::Cudnn>::negotiate(host, backend, error);
}
