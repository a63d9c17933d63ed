#pragma once
#include <map>

#include "conformance/drawn/flaw.h"
#include "conformance/seam/mirrored.h"

namespace weft::conformance {

/// The calls that a lie strikes.
struct When {
  enum class Kind : uint8_t {
    always,
    dtype,        ///< results of `dtype`
    one_size,     ///< results of `n` elements
    above,        ///< results of more than `n` elements
    batch,        ///< more than `n` rows
    from_call,    ///< from the n-th call with the same types on
    from_launch,  ///< from the kernel's n-th launch on
  } kind = Kind::always;
  int64_t n = 0;
  DType dtype = DType::f32;
};
std::string text(const When& when);

/// One fault in one kernel.
struct Lie {
  std::string kernel;  ///< its id without the provider: "add.shared"
  std::string op;
  const Flaw* flaw = nullptr;
  When when;
  uint64_t drawn = 0;  ///< which element, which attribute
};
std::string text(const Lie& lie);

/// A good backend that tells one lie after another. One object serves all lies, since a name and its devices
/// last as long as the process.
class Teller : public Mirrored {
 public:
  Teller(std::string name, const weft_backend& inner);

  /// Sets the lie; no earlier plan may be left in a cache.
  void tell(const Lie& lie);
  /// The number of observable strikes: see Strike::told.
  int64_t told() const { return *told_; }

  weft_code accepts(const weft_kernel& kernel, weft_device d, const weft_call* c, weft_error* e) override;
  weft_code launch(const weft_launch* l, weft_error* e) override;

 private:
  bool is_struck(const weft_call& call) const;

  Lie lie_;
  int64_t* told_;  // in memory shared with child processes
  int64_t launches_ = 0;
  std::map<std::vector<int64_t>, int64_t> calls_;  // by types
  std::vector<char> last_;
};

/// The liar that wraps this backend, registered at the first call.
Teller& teller(const std::string& backend);

}  // namespace weft::conformance
