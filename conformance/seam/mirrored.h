#pragma once
#include <map>
#include <span>

#include "conformance/seam/wrapped.h"

namespace weft::conformance {

/// A wrapped backend whose `launch` finds the bytes of its tensors in host memory, wherever the device's is.
///
/// On a device of host memory they are where they are. Elsewhere each buffer of a launch has a mirror on the
/// host, which is filled before `launch` and written back behind it; then a launch has run when it returns.
class Mirrored : public Wrapped {
 public:
  using Wrapped::Wrapped;

  weft_code enter(const weft_launch* l, weft_error* e) final;
  /// The good kernel. Its tensors may lie in mirrors and in any other memory of the host.
  weft_code launch(const weft_launch* l, weft_error* e) override;
  weft_code allocate(weft_device d, uint64_t bytes, void** handle, weft_error* e) override;
  void free(weft_device d, void* handle) override;

 protected:
  /// Memory of the device: a buffer, and where in it.
  struct Place {
    weft_device device = nullptr;
    void* handle = nullptr;
    uint64_t offset = 0;
    auto operator<=>(const Place&) const = default;
  };
  /// Where a tensor of the current launch lies on the device.
  Place place_of(const weft_launch* l, const weft_tensor* t) const;
  /// Writes there, at once, from any thread.
  void write(const Place& to, std::span<const char> bytes);

 private:
  class Mirrors;
  uint64_t size_of(void* handle);

  std::mutex mutex_;
  std::map<void*, uint64_t> sizes_;  // of buffers
};

}  // namespace weft::conformance
