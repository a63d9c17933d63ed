#include "conformance/grown.h"

#include <cmath>

#include "conformance/asks.h"
#include "conformance/edges.h"

namespace weft::conformance {

std::optional<Case> grown(const Case& c, int64_t factor) {
  Case larger = c;
  for (Input& input : larger.inputs) {
    if (input.kind == Input::Kind::values) return std::nullopt;
    for (int64_t& d : input.shape)
      if (d > 4) d *= factor;
  }
  return larger;
}

namespace {

constexpr int64_t kMostElements = 200'000;

int64_t elements(const Case& c) {
  int64_t n = 0;
  for (const Input& input : c.inputs) n += count(input.shape);
  return n;
}

}  // namespace

std::vector<Ask> drawn_asks(const ir::OpDef& op, const OpCases& cases, size_t most, Random& random) {
  OpCases all = cases;
  for (const Case& c : edge_cases(op)) all.push_back(c);
  for (const Case& c : cases)
    if (auto larger = grown(c, 8); larger && elements(*larger) <= kMostElements) all.push_back(*larger);
  std::ranges::stable_sort(all, {}, elements);
  std::vector<Ask> asks;
  for (size_t tries = 0; tries < 4 * most && asks.size() < most; ++tries) {
    const size_t least = tries % 2 ? all.size() / 2 : 0;  // every other one from the larger half
    Case c = all[least + random.bits() % (all.size() - least)];
    // Mostly f32, for which there are most kernels.
    if (const auto f32 = c.dtypes & only({DType::f32}); f32 && random.bits() % 4) c.dtypes = f32;
    auto some = asks_of(op, {c});
    if (!some.empty()) asks.push_back(std::move(some[random.bits() % some.size()]));
  }
  return asks;
}

std::optional<HostTensor> other_data(const HostTensor& t, int variant, Random& random) {
  HostTensor other = t;
  const DType dtype = t.type.dtype;
  const size_t one = byte_size(dtype), n = t.bytes.size() / one;
  if (n == 0) return std::nullopt;
  if (variant == 0) {
    std::ranges::rotate(other.bytes,
                        other.bytes.begin() + static_cast<std::ptrdiff_t>((1 + n / 3) % n * one));
  } else {
    const size_t at = variant == 1 ? n - 1 : random.bits() % n;
    // Integers may be indices, so they stay in the range of the existing ones.
    if (is_float(dtype))
      store_element(dtype, other.bytes.data(), at, load_element<double>(dtype, t.bytes.data(), at) * 0.75);
    else
      std::memcpy(&other.bytes[at * one], &t.bytes[(at + 1) % n * one], one);
  }
  if (other.bytes == t.bytes) return std::nullopt;
  return other;
}

}  // namespace weft::conformance
