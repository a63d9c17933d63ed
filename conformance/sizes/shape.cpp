#include <algorithm>
#include <cmath>

#include "conformance/sizes/draw.h"

namespace weft::conformance {

Random random_for(uint64_t seed, const ir::OpDef& op, uint64_t index) {
  uint64_t state = seed * 0x9e3779b97f4a7c15 ^ index * 0xd1b54a32d192ed03;
  for (const char c : std::string_view(op.name)) state = (state ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return Random(state);
}

int64_t log_uniform(Random& random, int64_t low, int64_t high) {
  if (high <= low) return low;
  const double at =
      std::log(double(low)) + random.uniform() * (std::log(double(high) + 1) - std::log(double(low)));
  return std::clamp(static_cast<int64_t>(std::exp(at)), low, high);
}

namespace {

constexpr int64_t kLongest = 100'000;

// At or next to a multiple of the widths of vectors and blocks.
int64_t beside_a_block(Random& random, int64_t n, int64_t least, int64_t most) {
  static constexpr int64_t kBlocks[] = {4, 8, 16, 32, 64, 100, 128, 256, 500, 512, 1000, 1024, 4096, 65536};
  std::vector<int64_t> fitting;
  for (const int64_t b : kBlocks)
    if (b <= n) fitting.push_back(b);
  if (fitting.empty() || random.bits() % 2) return n;
  const int64_t block = fitting[random.bits() % fitting.size()];
  const int64_t beside = n / block * block + static_cast<int64_t>(random.bits() % 3) - 1;
  return std::clamp<int64_t>(beside, std::min(least, most), most);
}

}  // namespace

Dims draw_shape(Random& random, int rank, int64_t most) {
  Dims shape(static_cast<size_t>(rank), 1);
  const auto r = static_cast<size_t>(rank);
  if (r == 0) return shape;
  // A root of the largest product, so that one axis leaves room for the others.
  const auto equal = static_cast<int64_t>(std::pow(double(most), 1.0 / rank));
  const bool all_long = equal > 129 && random.bits() % 2 == 0;
  const size_t longest = random.bits() % r;
  int64_t left = most;
  for (size_t i = 0; i < r; ++i) {
    const size_t d = (longest + i) % r;  // the longest first
    const auto others = static_cast<double>(r - 1 - i);
    const int64_t reserved = all_long ? static_cast<int64_t>(std::pow(129.0, others)) : 1;
    const int64_t high = std::clamp<int64_t>(left / reserved, 1, kLongest);
    const int64_t least = all_long ? 129 : 1;
    shape[d] = log_uniform(random, least, all_long ? std::min(high, 4 * equal) : high);
    shape[d] = beside_a_block(random, shape[d], least, high);
    left = std::max<int64_t>(1, left / std::max<int64_t>(1, shape[d]));
  }
  return shape;
}

}  // namespace weft::conformance
