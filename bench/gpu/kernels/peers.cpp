#include <cstdio>

#include "measure.hpp"
#include "weft/backends.h"

// Copies between the devices of a backend.
namespace weft::bench {

namespace {

/// There and back again: an answer that its device may still be computing when it is asked for.
bool same_there_and_back(const std::string& from, const std::string& to, int64_t elements) {
  const Tensor x = random(3, {elements});
  Tensor y = x;
  for (int i = 0; i < 20; ++i) y = y + x;
  const Tensor there = y.to(to);
  const Tensor doubled = (there + there).to(from);
  const bool same = there.to_bytes() == y.to_bytes() && doubled.to_bytes() == (y + y).to_bytes();
  if (!same)
    std::fprintf(stderr, "%lld elements from %s to %s: other bytes arrived\n",
                 static_cast<long long>(elements), from.c_str(), to.c_str());
  return same;
}

void measure_copy(const std::string& from, const std::string& to) {
  constexpr int64_t kElements = int64_t{1} << 28, kBytes = 2 * kElements;
  const Tensor x = random(5, {kElements});
  std::vector<double> times;
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = Clock::now();
    const Tensor there = x.to(to);
    (void)slice(there, 0, 0, 1).to_bytes();
    times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  std::printf(R"({"op": "copy from %s to %s", "bytes": %lld, "gigabytes_per_second": %.1f})"
              "\n",
              from.c_str(), to.c_str(), static_cast<long long>(kBytes),
              static_cast<double>(kBytes) / middle(times) / 1e9);
}

}  // namespace

bool check_peers() {
  const std::string from = random(1, {1}).backend();
  const auto devices = get_backend_info(from.substr(0, from.find(':'))).devices;
  if (devices.size() < 2) std::printf("{\"skipped\": \"%s has one device\"}\n", from.c_str());
  bool good = true;
  for (const auto& device : devices) {
    if (device.name == from) continue;
    for (const int64_t elements : {1, 1000, 3'000'001, 100'000'000})
      good &= same_there_and_back(from, device.name, elements);
    measure_copy(from, device.name);
  }
  return good;
}

}  // namespace weft::bench
