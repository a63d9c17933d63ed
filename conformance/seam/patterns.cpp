#include "conformance/seam/patterns.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace weft::conformance {

// Megabytes of it are compared, without optimising, too: so block by block.
size_t Pattern::block(size_t at, size_t n, Block& words) const {
  const size_t within = at % 8, taken = std::min(n, sizeof words - within), first = at / 8;
  for (size_t i = 0; 8 * i < within + taken; ++i) words[i] = word(first + i);
  return taken;
}

void Pattern::fill(std::span<std::byte> bytes, size_t at) const {
  Block words;
  for (size_t i = 0, n = 0; i < bytes.size(); i += n) {
    n = block(at + i, bytes.size() - i, words);
    std::memcpy(&bytes[i], reinterpret_cast<const std::byte*>(words) + (at + i) % 8, n);
  }
}

std::vector<std::byte> Pattern::bytes(size_t n, size_t at) const {
  std::vector<std::byte> all(n);
  fill(all, at);
  return all;
}

std::optional<size_t> Pattern::first_wrong(std::span<const std::byte> bytes, size_t at) const {
  Block words;
  for (size_t i = 0, n = 0; i < bytes.size(); i += n) {
    n = block(at + i, bytes.size() - i, words);
    const auto* want = reinterpret_cast<const std::byte*>(words) + (at + i) % 8;
    if (std::memcmp(&bytes[i], want, n) == 0) continue;
    return i + static_cast<size_t>(std::mismatch(want, want + n, &bytes[i]).first - want);
  }
  return std::nullopt;
}

Held hold(Rig& rig, size_t bytes, uint64_t key) {
  constexpr uintptr_t kAlignment = 64;  // weft_backend.allocate
  Held held{value_or_raise(rig.device.allocate_unpooled(bytes)), bytes, Pattern(key)};
  if (const auto past = reinterpret_cast<uintptr_t>(held.buffer->handle) % kAlignment;
      past && rig.device.host_memory())
    throw Error(fail(Code::internal, "a buffer of {} bytes begins {} behind a multiple of {}", bytes, past,
                     kAlignment));
  const auto all = held.pattern.bytes(bytes);
  raise_if(rig.queue->copy_in(*held.buffer.get(), 0, all.data(), bytes));
  return held;
}

std::string spoilt(Rig& rig, const Held& held) {
  std::vector<std::byte> got(held.bytes);
  raise_if(rig.queue->copy_out(got.data(), *held.buffer.get(), 0, held.bytes));
  const auto wrong = held.pattern.first_wrong(got);
  return wrong ? fmt::format("byte {} of a buffer of {} is another one", *wrong, held.bytes) : "";
}

size_t drawn_size(Random& random, size_t least, size_t most) {
  const double low = std::log(static_cast<double>(least)), high = std::log(static_cast<double>(most));
  auto n = static_cast<size_t>(std::exp(low + (high - low) * random.uniform()));
  if (random.bits() % 3 == 0) {  // next to a multiple of a large power of two
    size_t block = 1;
    while (block * 16 <= n) block *= 2;
    n = n / block * block + random.bits() % 3 - 1;
  }
  return std::clamp(n, least, most);
}

}  // namespace weft::conformance
