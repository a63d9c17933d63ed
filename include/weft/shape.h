#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/small_vector.h"
#include "weft/status.h"

namespace weft {

namespace detail {
struct DimExpr;
}

/// A dimension: an integer, or a canonical integer expression (+, *, floor-div, max) over bounded symbols.
///
/// Two Dims are equal exactly when their canonical forms are; `batch * 16 + batch` equals `17 * batch`.
/// Expressions are interned for the life of the process, so a Dim is one word and cheap to copy.
class Dim {
 public:
  /// The integers that a Dim holds; others raise invalid_argument.
  static constexpr int64_t kMax = (int64_t{1} << 62) - 1, kMin = -kMax - 1;

  Dim() = default;
  template <class I>
    requires std::is_integral_v<I>
  constexpr Dim(I value) : bits_(coded(static_cast<int64_t>(value))) {}  // NOLINT

  /// A named unknown in [min, max], as in `Dim::symbol("batch", 1, 512)`.
  ///
  /// Errors   invalid_argument for what check_symbol refuses.
  static Dim symbol(std::string_view name, int64_t min, int64_t max);

  bool is_const() const { return (bits_ & 1) == 0; }
  /// The integer. Call only when is_const().
  int64_t value() const { return static_cast<int64_t>(bits_) >> 1; }
  int64_t min() const { return is_const() ? value() : bounds().first; }
  int64_t max() const { return is_const() ? value() : bounds().second; }
  /// "batch*16", "7".
  std::string text() const;
  uint64_t bits() const { return bits_; }

  friend bool operator==(Dim a, Dim b) { return a.bits_ == b.bits_; }
  friend Dim operator+(Dim a, Dim b);
  friend Dim operator-(Dim a, Dim b);
  friend Dim operator*(Dim a, Dim b);
  /// Floor division by a positive integer.
  friend Dim floor_div(Dim a, int64_t divisor);
  friend Dim max(Dim a, Dim b);
  friend Dim min(Dim a, Dim b);
  /// a / b where b divides a whatever the symbols are: `batch*seq` by `seq` is `batch`. Nothing elsewhere,
  /// and for b = 0.
  friend std::optional<Dim> exact_div(Dim a, Dim b);

 private:
  friend struct detail::DimExpr;
  explicit Dim(const detail::DimExpr* e) : bits_(reinterpret_cast<uint64_t>(e) | 1) {}
  const detail::DimExpr* expr() const {
    return reinterpret_cast<const detail::DimExpr*>(bits_ & ~uint64_t{1});
  }
  std::pair<int64_t, int64_t> bounds() const;
  [[noreturn]] static void raise_too_large(int64_t value);
  static constexpr uint64_t coded(int64_t value) {
    if (value < kMin || value > kMax) raise_too_large(value);
    return static_cast<uint64_t>(value) << 1;
  }
  uint64_t bits_ = 0;
};

using Shape = SmallVector<Dim, 6>;
using IntList = SmallVector<int64_t, 6>;

/// A symbol with its bounds, as a program file lists them.
struct Symbol {
  std::string name;
  int64_t min = 0, max = 0;
  friend bool operator==(const Symbol&, const Symbol&) = default;
};

/// Error unless the name is a word that a dimension's text can spell and 0 <= min <= max <= 2^61, so that
/// sums of two stay within a Dim.
Status check_symbol(const Symbol& symbol);

/// Values for symbols, by name.
class Bindings {
 public:
  /// Error when `name` already has another value.
  Status bind(std::string_view name, int64_t value);
  const int64_t* find(std::string_view name) const;
  const std::vector<std::pair<std::string, int64_t>>& all() const { return values_; }
  friend bool operator==(const Bindings&, const Bindings&) = default;

 private:
  std::vector<std::pair<std::string, int64_t>> values_;  // sorted by name
};

/// The integer a Dim has under `bindings`; an error names a symbol without a value.
Result<int64_t> evaluate(Dim dim, const Bindings& bindings);
Result<IntList> evaluate(std::span<const Dim> dims, const Bindings& bindings);
/// Solves `dim == value` for the one symbol in it, and binds it; checks instead when all are bound.
///
/// Errors   invalid_argument where no value of the symbol does, and where several do, as of n//2.
Status unify(Dim dim, int64_t value, Bindings& bindings);
/// Appends the symbols of `dim` that `out` does not hold yet.
void collect_symbols(Dim dim, std::vector<Symbol>& out);
/// Reads what Dim::text prints; symbols must be in `symbols`.
Result<Dim> parse_dim(std::string_view text, std::span<const Symbol> symbols);

/// Product of all dims; 1 for rank 0.
Dim element_count(std::span<const Dim> shape);
int64_t element_count(std::span<const int64_t> shape);
/// "[4, batch*16]".
std::string text(std::span<const Dim> shape);
std::string text(std::span<const int64_t> shape);
inline std::string text(const Shape& shape) { return text(std::span<const Dim>(shape)); }
/// Row-major strides in elements.
IntList contiguous_strides(std::span<const int64_t> shape);
inline Shape to_shape(std::span<const int64_t> dims) { return Shape(dims.begin(), dims.end()); }

}  // namespace weft
