#include "conformance/inputs.h"

#include <cmath>

namespace weft::conformance {

// Integers get a few small values where floats get a normal distribution.
static Real draw(const Input& input, size_t i, DType t, Random& random) {
  switch (input.kind) {
    case Input::Kind::normal: {
      const double x = random.normal();
      if (is_float(t)) return x;
      if (t == DType::boolean) return x < 0;
      return std::round(4 * (lowest(t) < 0 ? x : std::fabs(x)));
    }
    case Input::Kind::uniform: return input.low + (input.high - input.low) * random.uniform();
    case Input::Kind::integers:
      return input.low +
             static_cast<double>(random.bits() % static_cast<uint64_t>(input.high - input.low + 1));
    case Input::Kind::values: return input.list.at(i);
  }
  return 0;
}

std::vector<Array> make_inputs(const Case& c, DType t, uint64_t seed) {
  std::vector<Array> out;
  Random random(seed);
  for (const auto& input : c.inputs) {
    Array a{input.dtype.value_or(t), input.shape, {}};
    const auto n = static_cast<size_t>(count(a.shape));
    a.v.reserve(n);
    for (size_t i = 0; i < n; ++i) a.v.push_back(round_to(a.dtype, draw(input, i, a.dtype, random)));
    out.push_back(std::move(a));
  }
  return out;
}

bool has_free_dtype(const Case& c) {
  for (const auto& input : c.inputs)
    if (!input.dtype) return true;
  return false;
}

}  // namespace weft::conformance
