#pragma once
#include "conformance/rational.h"
#include "ir/op.h"

// What each primitive op means, evaluated naively: one loop over the output, coordinates by division, no
// blocking, no code shared with any kernel. S is Real (truth for every dtype) or Rational (exact, for small
// numbers).
namespace weft::conformance {

/// Attributes of one call by name; normalized, so no axis is negative.
class CallAttrs {
 public:
  CallAttrs(const ir::OpDef& op, ir::AttrView view) : op_(op), view_(view) {}
  int64_t integer(std::string_view name) const { return std::get<int64_t>(at(name)); }
  double real(std::string_view name) const { return std::get<double>(at(name)); }
  Dims dims(std::string_view name) const;
  DType dtype(std::string_view name) const { return *dtype_from_name(std::get<std::string>(at(name))); }

 private:
  const AttrValue& at(std::string_view name) const;
  const ir::OpDef& op_;
  ir::AttrView view_;
};

/// The results of a primitive, not yet rounded to a float dtype (integers are exact, modulo their width).
/// `inputs` in the order of the op's operands.
template <class S>
std::vector<ArrayOf<S>> evaluate(const ir::OpDef& op, ir::AttrView attrs,
                                 std::span<const ArrayOf<S>* const> inputs);
extern template std::vector<ArrayOf<Real>> evaluate(const ir::OpDef&, ir::AttrView,
                                                    std::span<const ArrayOf<Real>* const>);
extern template std::vector<ArrayOf<Rational>> evaluate(const ir::OpDef&, ir::AttrView,
                                                        std::span<const ArrayOf<Rational>* const>);

/// Four words of Philox4x32-10.
std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter_low, uint64_t counter_high = 0);

/// x repeated to `shape` by NumPy's rule.
template <class S>
ArrayOf<S> broadcast(const ArrayOf<S>& x, const Dims& shape);
extern template ArrayOf<Real> broadcast(const ArrayOf<Real>&, const Dims&);
extern template ArrayOf<Rational> broadcast(const ArrayOf<Rational>&, const Dims&);

}  // namespace weft::conformance
