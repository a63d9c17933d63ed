#pragma once
#include "cubin.h"
#include "weft/backend/provider.hpp"

// The provider of kernels that were compiled ahead of time, for CUDA devices: its plug-in holds the cubins.
namespace weft::kernels {
std::vector<backend::KernelRecord> own();  // made from kernels/
}  // namespace weft::kernels

namespace weft::cubins {

/// `Name::kName` is the provider's.
template <class Name>
struct CubinProvider : Name {
  static constexpr const char *kServes = "cuda", *kStream = "cuda.stream";
  static const std::string& missing() {
    static const std::string none;  // the kernels are in this file
    return none;
  }
  static const char* version() { return made_by(); }
  static std::vector<backend::KernelRecord> records() { return weft::kernels::own(); }
  static backend::Outcome attach(weft_device) { return backend::Outcome::ok(); }
  static void detach(weft_device) {}
};

}  // namespace weft::cubins
