#include "nn/range.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "weft/shared/numbers.hpp"

namespace weft::nn {
namespace {

/// Magnitude bits of floats are ordered like the numbers, with infinity and NaNs above. Numbers with bits in
/// [begin, end) get lost.
template <class Bits>
struct Lost {
  Bits begin = 0, end = 0;
};

// The least magnitude for which `past` holds; it is monotone, and true for the last one, a NaN.
template <class T, class Bits, class Past>
Bits least(const Past& past) {
  Bits low = 0, high = static_cast<Bits>(~Bits{0}) >> 1;
  while (low < high) {
    const auto middle = static_cast<Bits>(low + (high - low) / 2);
    if (past(shared::load(std::bit_cast<T>(middle))))
      high = middle;
    else
      low = static_cast<Bits>(middle + 1);
  }
  return low;
}

template <class T, class Bits>
Lost<Bits> lost(DType to) {
  return shared::visit<shared::Kinds::all>(to, [](auto tag) -> Lost<Bits> {
    using To = typename decltype(tag)::type;
    if constexpr (shared::is_any_float<To>)
      return {least<T, Bits>([](double v) { return !std::isfinite(shared::load(shared::store<To>(v))); }),
              least<T, Bits>([](double v) { return !std::isfinite(v); })};
    return {};
  });
}

// In blocks of fixed size, which compilers vectorize.
template <class Bits>
bool any(const Lost<Bits>& lost, std::span<const std::byte> elements) {
  constexpr size_t kBlock = 64;
  const auto in = [&](Bits bits) {
    const auto magnitude = static_cast<Bits>(bits & (static_cast<Bits>(~Bits{0}) >> 1));
    return static_cast<Bits>(magnitude - lost.begin) < static_cast<Bits>(lost.end - lost.begin);
  };
  Bits block[kBlock], found = 0;
  while (elements.size() >= sizeof block) {
    std::memcpy(block, elements.data(), sizeof block);
    for (size_t i = 0; i < kBlock; ++i) found |= in(block[i]);
    if (found) return true;
    elements = elements.subspan(sizeof block);
  }
  std::memcpy(block, elements.data(), elements.size());
  for (size_t i = 0; i < elements.size() / sizeof(Bits); ++i) found |= in(block[i]);
  return found != 0;
}

// f(lost numbers), in integers as wide as `from`.
template <class F>
bool with_lost(DType from, DType to, const F& f) {
  return shared::visit<shared::Kinds::all>(from, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (shared::is_any_float<T>)
      return shared::visit_size(from, [&](auto size) {
        using Bits = typename decltype(size)::type;
        if constexpr (sizeof(Bits) == sizeof(T)) {
          const auto range = lost<T, Bits>(to);
          return range.begin < range.end && f(range);
        }
        return false;
      });
    return false;
  });
}

}  // namespace

bool may_overflow(DType from, DType to) {
  return with_lost(from, to, [](const auto&) { return true; });
}

bool overflows(DType from, std::span<const std::byte> elements, DType to) {
  return with_lost(from, to, [&](const auto& range) { return any(range, elements); });
}

}  // namespace weft::nn
