#include <unistd.h>

#include <cstring>

#include "conformance/check.h"
#include "conformance/seam/rig.h"
#include "weft/ops.h"

// More elements than 31 bits count: only in full runs, and where there is memory for them.
namespace weft::conformance {
namespace {

constexpr int64_t k31 = int64_t{1} << 31;
constexpr uint64_t kBuffers = 5;  // of 2 GiB: operand and result, here and there, and what an op needs

uint8_t element(int64_t i) { return static_cast<uint8_t>(i % 251 + i / 65521); }

Tensor made(int64_t n, const std::string& backend) {
  std::vector<std::byte> bytes(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) bytes[static_cast<size_t>(i)] = std::byte{element(i)};
  const int64_t shape[] = {n};
  return Tensor::from_bytes(bytes, shape, DType::u8, backend);
}

template <class F>
std::string differs_from(const Tensor& got, int64_t n, F want) {
  const auto bytes = got.to_bytes();
  if (bytes.size() != static_cast<size_t>(n)) return fmt::format("{} elements, not {}", bytes.size(), n);
  for (int64_t i = 0; i < n; ++i)
    if (const auto v = static_cast<uint8_t>(bytes[static_cast<size_t>(i)]);
        v != static_cast<uint8_t>(want(i)))
      return fmt::format("element {}: got {}, expected {}", i, v, static_cast<uint8_t>(want(i)));
  return "";
}

std::string lack_of_memory(const weft_capability& device) {
  const uint64_t needs = kBuffers * static_cast<uint64_t>(k31 + 1);
  const uint64_t free =
      static_cast<uint64_t>(::sysconf(_SC_AVPHYS_PAGES)) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  if (free < needs) return fmt::format("{} GiB of memory are free, {} are wanted", free >> 30, needs >> 30);
  if (device.max_buffer && device.max_buffer < static_cast<uint64_t>(k31 + 1))
    return fmt::format("its buffers hold at most {} bytes", device.max_buffer);
  return "";
}

void run(CheckRun& run) {
  const OnBackend on(run.backend());
  auto& device = *value_or_raise(seam::registry().open(run.backend()));
  const auto left_out =
      run.options().full ? lack_of_memory(device.capability()) : "only a full run has them: --full";
  const auto one = [&](const std::string& name, const std::function<std::string()>& body) {
    run.run(name, [&] {
      if (!left_out.empty()) return Found::skipped(left_out);
      const auto found = Found::wrong(body());
      device.trim();
      return found;
    });
  };
  for (const int64_t n : {k31 - 1, k31, k31 + 1})
    one(fmt::format("add u8 [{}]", n), [&] {
      const Tensor x = made(n, run.backend());
      return differs_from(add(x, x), n, [](int64_t i) { return 2 * element(i); });
    });
  one("slice behind 2^31", [&] {
    const Tensor x = made(k31 + 9, run.backend());
    return differs_from(slice(x, 0, k31 - 3, k31 + 9), 12, [](int64_t i) { return element(k31 - 3 + i); });
  });
  one("gather behind 2^31", [&] {
    const Tensor x = made(k31 + 9, run.backend());
    const std::vector<int64_t> at = {k31 + 8, 0, k31, k31 - 1};
    const int64_t shape[] = {4};
    return differs_from(gather(x, Tensor::of(std::span<const int64_t>(at), shape, DType::i64)), 4,
                        [&](int64_t i) { return element(at[static_cast<size_t>(i)]); });
  });
}

}  // namespace

extern const Check huge_check = {"huge", "indices beyond 2^31 are indices, in full runs", run};

}  // namespace weft::conformance
