#pragma once
#include <memory>
#include <optional>

#include "weft/attr.h"
#include "weft/backend.h"

// The concrete call, and the C struct that points into it.
namespace weft::seam {

/// dtype and sizes.
struct ConcreteType {
  DType dtype = DType::f32;
  IntList shape;

  uint64_t bytes() const { return static_cast<uint64_t>(element_count(shape)) * byte_size(dtype); }
  friend bool operator==(const ConcreteType&, const ConcreteType&) = default;
};
std::string text(const ConcreteType& type);

struct RegionDesc;

/// The layout of an operand that is not contiguous row-major.
struct Layout {
  IntList strides;  ///< in elements
  uint64_t alignment = 0;
};

/// An operand with the same bytes in every launch.
struct Constant {
  uint32_t input = 0;
  std::vector<std::string> packings;  ///< ids of the existing ones
  bool one_size = false;              ///< the calls that read it have the same sizes in every run
  friend bool operator==(const Constant&, const Constant&) = default;
};

/// Everything a kernel may ask about a call. Sizes and attributes hold no symbols.
struct CallDesc {
  std::string op;
  uint32_t version = 1;
  std::vector<std::optional<ConcreteType>> inputs;
  std::vector<ConcreteType> outputs;
  std::vector<std::optional<Layout>> layouts;  // of the inputs; empty: all are row-major
  std::vector<Constant> constants;             // of the inputs
  std::vector<Attr> attrs;                     // sorted by name
  std::vector<std::string> off_default;        // names of attributes that differ from the op's default
  std::vector<std::pair<uint32_t, uint32_t>> updates;  // output, input
  uint64_t accumulate = 0;
  uint8_t determinism = 0, precision = 0;
  std::shared_ptr<const RegionDesc> region;  // null for a primitive
};

struct StepDesc {
  CallDesc call;
  std::vector<uint32_t> inputs, outputs;  // value numbers, UINT32_MAX where absent
};

/// The body of a call: values are the inputs, then each step's outputs. A step may carry a body of its own;
/// kernels see all of them as one (seam/flatten.h).
struct RegionDesc {
  std::vector<ConcreteType> values;
  uint32_t n_inputs = 0;
  std::vector<StepDesc> steps;
  std::vector<uint32_t> outputs;
};

/// A CallDesc with its C view. Never moves, so the view stays true.
class OwnedCall {
 public:
  explicit OwnedCall(CallDesc desc);
  ~OwnedCall();
  OwnedCall(const OwnedCall&) = delete;
  OwnedCall& operator=(const OwnedCall&) = delete;

  const CallDesc& desc() const { return desc_; }
  const weft_call* c() const { return &view_; }

 private:
  struct Views;
  CallDesc desc_;
  weft_call view_{};
  std::unique_ptr<Views> views_;
};
using CallPtr = std::shared_ptr<const OwnedCall>;

/// "softmax (bf16[4, 3, 131072], axis=1)": how messages name a call.
std::string text(const CallDesc& call);

}  // namespace weft::seam
