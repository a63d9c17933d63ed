#pragma once
#include <optional>
#include <span>

#include "conformance/real.h"
#include "weft/attr.h"

// Op cases as data: conformance/ops/<op>.cpp defines `OpCases <op>_cases()`, and the build lists the folder.
// More than a hundred files include this, so its own includes must be cheap.
namespace weft::conformance {

/// How to fill an operand. Its dtype is the one that the suite tries, unless `as` fixes it.
struct Input {
  enum class Kind : uint8_t { normal, uniform, integers, values };
  Kind kind = Kind::normal;
  Dims shape;
  double low = 0, high = 0;
  std::vector<Real> list;
  std::optional<DType> dtype;

  bool operator==(const Input&) const = default;
  Input as(DType t) const {
    Input i = *this;
    i.dtype = t;
    return i;
  }
};
inline Input normal(Dims shape) { return {Input::Kind::normal, std::move(shape), 0, 1, {}, {}}; }
inline Input uniform(Dims shape, double low, double high) {
  return {Input::Kind::uniform, std::move(shape), low, high, {}, {}};
}
/// From low to high, inclusive.
inline Input integers(Dims shape, int low, int high) {
  return {Input::Kind::integers, std::move(shape), double(low), double(high), {}, {}};
}
inline Input values(std::vector<Real> list, Dims shape) {
  return {Input::Kind::values, std::move(shape), 0, 0, std::move(list), {}};
}
inline Input values(std::vector<Real> list) {
  const auto n = static_cast<int64_t>(list.size());
  return values(std::move(list), {n});
}
inline Input constant(Dims shape, double value) {
  const auto n = static_cast<size_t>(count(shape));
  return values(std::vector<Real>(n, value), std::move(shape));
}

/// A set of dtypes.
using DTypes = uint32_t;
constexpr DTypes only(std::initializer_list<DType> list) {
  DTypes set = 0;
  for (const DType t : list) set |= 1u << static_cast<int>(t);
  return set;
}
constexpr bool holds(DTypes set, DType t) { return set >> static_cast<int>(t) & 1; }
inline constexpr DTypes kFloats = only({DType::f64, DType::f32, DType::f16, DType::bf16});
inline constexpr DTypes kWideFloats = only({DType::f64, DType::f32});
inline constexpr DTypes kAnyDType = (1u << kDTypeCount) - 1;

/// One call of an op, tried in every dtype of `dtypes` that the op's shape rule takes.
struct Case {
  std::vector<Input> inputs;
  std::vector<Attr> attrs;
  const char* why = "";
  DTypes dtypes = kAnyDType;
  const char* no_gradient = nullptr;  ///< why finite differences say nothing here: a kink, an infinity
};

using OpCases = std::vector<Case>;

struct CaseFile {
  const char* op;
  OpCases (*cases)();
};
/// The folder conformance/ops, in order.
std::span<const CaseFile> case_files();

}  // namespace weft::conformance
