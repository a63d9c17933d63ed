#include <unistd.h>

#include <cstring>

#include "conformance/check.h"
#include "conformance/seam/rig.h"
#include "weft/ops.h"

// More than 2^31 elements: only in full runs, on machines with enough memory.
namespace weft::conformance::checks::huge {
namespace {

constexpr int64_t k31 = int64_t{1} << 31;
constexpr uint64_t kMemory = 10ull << 30;  // operand and result, on host and device, and the op's own needs

uint8_t element(int64_t i) { return static_cast<uint8_t>(i % 251 + i / 65521); }

Tensor made(int64_t n, DType t, const std::string& backend) {
  std::vector<std::byte> bytes(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i)
    bytes[static_cast<size_t>(i)] = std::byte(t == DType::boolean ? element(i) & 1 : element(i));
  const int64_t shape[] = {n};
  return Tensor::from_bytes(bytes, shape, t, backend);
}
/// Zeros, then a one at the end.
Tensor last_is_one(int64_t n, const std::string& backend) {
  std::vector<std::byte> bytes(static_cast<size_t>(n) * 2);
  bytes[bytes.size() - 2] = std::byte{0x80}, bytes[bytes.size() - 1] = std::byte{0x3f};  // bf16
  const int64_t shape[] = {n};
  return Tensor::from_bytes(bytes, shape, DType::bf16, backend);
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

/// Why a buffer of this size is not tried; empty: it is.
std::string lack_of_memory(const weft_capability& device, int64_t bytes) {
  const uint64_t free =
      static_cast<uint64_t>(::sysconf(_SC_AVPHYS_PAGES)) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  if (free < kMemory)
    return fmt::format("{} GiB of memory are free, {} are wanted", free >> 30, kMemory >> 30);
  if (device.max_buffer && device.max_buffer < static_cast<uint64_t>(bytes))
    return fmt::format("its buffers hold at most {} bytes", device.max_buffer);
  return "";
}

std::string flips_bits(int64_t n, const std::string& backend) {
  const bool yes[] = {true};
  const Tensor x = made(n, DType::boolean, backend);
  const Tensor flips = Tensor::from_bytes(std::as_bytes(std::span(yes)), {}, DType::boolean, backend);
  return differs_from(bit_xor(x, flips), n, [](int64_t i) { return 1 - (element(i) & 1); });
}
std::string finds_the_last(int64_t n, const std::string& backend) {
  const double got = max(last_is_one(n, backend)).item();
  return got == 1 ? "" : fmt::format("got {}, expected the last element, 1", got);
}
std::string slices(const std::string& backend) {
  const Tensor x = made(k31 + 9, DType::u8, backend);
  return differs_from(slice(x, 0, k31 - 3, k31 + 9), 12, [](int64_t i) { return element(k31 - 3 + i); });
}
std::string gathers(const std::string& backend) {
  const Tensor x = made(k31 + 9, DType::u8, backend);
  const std::vector<int64_t> at = {k31 + 8, 0, k31, k31 - 1};
  const int64_t shape[] = {4};
  return differs_from(gather(x, Tensor::of(std::span<const int64_t>(at), shape, DType::i64)), 4,
                      [&](int64_t i) { return element(at[static_cast<size_t>(i)]); });
}

void run(CheckRun& run) {
  const OnBackend on(run.backend());
  const auto& backend = run.backend();
  auto& device = *value_or_raise(seam::registry().open(backend));
  const auto one = [&](const std::string& name, int64_t bytes, const std::function<std::string()>& body) {
    run.run(name, [&] {
      const auto left_out = run.options().full ? lack_of_memory(device.capability(), bytes)
                                               : "only a full run has them: --full";
      if (!left_out.empty()) return Found::skipped(left_out);
      const auto found = Found::wrong(body());
      device.trim();
      return found;
    });
  };
  for (const int64_t n : {k31 - 1, k31, k31 + 1})
    one(fmt::format("bit_xor bool [{}]", n), n, [&] { return flips_bits(n, backend); });
  one(fmt::format("max bf16 [{}]", k31 + 1), 2 * (k31 + 1), [&] { return finds_the_last(k31 + 1, backend); });
  one("slice behind 2^31", k31 + 9, [&] { return slices(backend); });
  one("gather behind 2^31", k31 + 9, [&] { return gathers(backend); });
}

}  // namespace

extern const Check check = {"huge", "indices beyond 2^31 are indices, in full runs", run, true};

}  // namespace weft::conformance::checks::huge
