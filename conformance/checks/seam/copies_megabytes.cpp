#include <algorithm>
#include <cstring>

#include "conformance/check.h"
#include "conformance/seam/patterns.h"

// Copies of 64 KiB to 64 MiB at odd offsets, of odd lengths, in each direction; and hundreds of random small
// ones. All bytes around must stay.
namespace weft::conformance::checks::copies_megabytes {
namespace {

using Bytes = std::vector<std::byte>;

void write(Rig& rig, const Held& to, size_t offset, Bytes from) {
  raise_if(rig.queue->copy_in(*to.buffer.get(), offset, from.data(), from.size()));
  std::ranges::fill(from, std::byte{0x99});  // the host may reuse its memory
}
Bytes read(Rig& rig, const Held& from) {
  Bytes got(from.bytes, std::byte{0xee});
  raise_if(rig.queue->copy_out(got.data(), *from.buffer.get(), 0, from.bytes));
  return got;
}

/// `inner` from byte `at`, for `n` bytes, with `outer` around it.
std::string wrong_mixture(const Bytes& got, const Pattern& outer, const Pattern& inner, size_t at, size_t n,
                          size_t inner_at = 0) {
  const std::span all(got);
  const auto say = [&](size_t byte, const char* where) {
    return fmt::format("byte {} of {}, {} the {} bytes at {}, is another one", byte, got.size(), where, n,
                       at);
  };
  if (const auto w = outer.first_wrong(all.first(at))) return say(*w, "before");
  if (const auto w = inner.first_wrong(all.subspan(at, n), inner_at)) return say(at + *w, "among");
  if (const auto w = outer.first_wrong(all.subspan(at + n), at + n)) return say(at + n + *w, "behind");
  return "";
}

Found at_odd_places(Rig& rig, size_t bytes, size_t before, size_t behind) {
  const size_t n = bytes - before - behind;
  const auto a = hold(rig, bytes, 1), b = hold(rig, bytes, 2);
  const Pattern inner(3);
  if (auto words = spoilt(rig, a); !words.empty()) return Found::wrong("in and out: " + words);
  write(rig, a, before, inner.bytes(n));
  if (auto words = wrong_mixture(read(rig, a), a.pattern, inner, before, n); !words.empty())
    return Found::wrong("in: " + words);
  // Not onto itself.
  const size_t to = behind, m = bytes - std::max(before, behind) - std::min(before, behind);
  raise_if(rig.queue->copy(*b.buffer.get(), to, *a.buffer.get(), before, m));
  if (auto words = wrong_mixture(read(rig, b), b.pattern, inner, to, m); !words.empty())
    return Found::wrong("within the device: " + words);
  Bytes got = Pattern(4).bytes(bytes);
  raise_if(rig.queue->copy_out(&got[1], *a.buffer.get(), before, n));
  if (auto words = wrong_mixture(got, Pattern(4), inner, 1, n); !words.empty())
    return Found::wrong("out: " + words);
  return {};
}

/// Two buffers and their expected contents.
class Twins {
 public:
  Twins(Rig& rig, Random& random, size_t most) : rig_(rig), random_(random) {
    for (size_t i = 0; i < 2; ++i) {
      held_[i] = hold(rig, most - random.bits() % (most / 3), i);
      wanted_[i] = held_[i].pattern.bytes(held_[i].bytes);
    }
  }
  /// A random copy: in, out, from one buffer to the other, or within one.
  std::string copy() {
    const size_t i = random_.bits() % 2, size = held_[i].bytes, n = drawn_size(random_, 1, size / 2),
                 at = random_.bits() % (size - n + 1);
    switch (random_.bits() % 4) {
      case 0: return in(i, at, n), "";
      case 1: return out(i, at, n);
      case 2: return across(i, at, std::min(n, held_[1 - i].bytes)), "";
      default: return along(i, n), "";
    }
  }
  std::string look() {
    for (size_t i = 0; i < 2; ++i)
      if (auto words = out(i, 0, held_[i].bytes); !words.empty()) return words;
    return "";
  }

 private:
  void in(size_t i, size_t at, size_t n) {
    const auto part = Pattern(random_.bits()).bytes(n);
    std::memcpy(&wanted_[i][at], part.data(), n);
    write(rig_, held_[i], at, part);
  }
  std::string out(size_t i, size_t at, size_t n) {
    Bytes got(n + 16, std::byte{0xee});
    raise_if(rig_.queue->copy_out(&got[8], *held_[i].buffer.get(), at, n));
    Bytes wanted(n + 16, std::byte{0xee});
    std::memcpy(&wanted[8], &wanted_[i][at], n);
    if (std::memcmp(got.data(), wanted.data(), got.size()) == 0) return "";
    for (size_t k = 0; k < got.size(); ++k)
      if (got[k] != wanted[k])
        return fmt::format("{} bytes out from byte {} of {}: byte {} is another one", n, at, held_[i].bytes,
                           static_cast<int64_t>(k) - 8);
    return "";
  }
  void across(size_t i, size_t at, size_t n) {
    n = std::min(n, held_[i].bytes - at);
    const size_t to = random_.bits() % (held_[1 - i].bytes - n + 1);
    raise_if(rig_.queue->copy(*held_[1 - i].buffer.get(), to, *held_[i].buffer.get(), at, n));
    std::memcpy(&wanted_[1 - i][to], &wanted_[i][at], n);
  }
  // From the lower half to the upper one, so that nothing overlaps.
  void along(size_t i, size_t n) {
    const size_t half = held_[i].bytes / 2, from = random_.bits() % (half - n + 1),
                 to = half + random_.bits() % (half - n + 1);
    raise_if(rig_.queue->copy(*held_[i].buffer.get(), to, *held_[i].buffer.get(), from, n));
    std::memcpy(&wanted_[i][to], &wanted_[i][from], n);
  }

  Rig& rig_;
  Random& random_;
  Held held_[2];
  Bytes wanted_[2];
};

Found no_bytes(Rig& rig) {
  const auto a = hold(rig, 500, 1), b = hold(rig, 500, 2);
  std::byte host{0x11};
  for (const size_t at : {0, 77, 500}) {
    raise_if(rig.queue->copy_in(*a.buffer.get(), at, &host, 0));
    raise_if(rig.queue->copy_out(&host, *a.buffer.get(), at, 0));
    raise_if(rig.queue->copy(*a.buffer.get(), at, *b.buffer.get(), at, 0));
  }
  if (host != std::byte{0x11}) return Found::wrong("a copy of no bytes wrote one to the host");
  return Found::wrong(spoilt(rig, a));
}

Found drawn_ones(Rig& rig, Random& random, size_t most, int copies) {
  Twins twins(rig, random, most);
  for (int i = 1; i <= copies; ++i) {
    auto words = twins.copy();
    if (words.empty() && i % 16 == 0) words = twins.look();
    if (!words.empty()) return Found::wrong(fmt::format("after {} copies: {}", i, words));
  }
  return Found::wrong(twins.look());
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  Random random(run.options().seed);
  const bool fast = rig.device.host_memory();
  run.run("no bytes", [&] { return no_bytes(rig); });
  for (const size_t most : {300, 5'000, 70'000, 1'100'000})
    run.run(fmt::format("drawn, up to {} bytes", most), [&] {
      Random own(random.bits());
      return drawn_ones(rig, own, most, fast && most < 1'000'000 ? 400 : 100);
    });
  const uint64_t device = rig.device.capability().max_buffer;
  for (int power = 16; power <= 26; power += power < 20 ? 2 : 1) {
    const size_t size = size_t{1} << power, before = 1 + random.bits() % 4097,
                 behind = 1 + random.bits() % 4097,
                 bytes = size + (power < 26 || !device || device > size + 65536 ? random.bits() % 65536 : 0);
    run.run(fmt::format("{} KiB and a tail", size >> 10), [&] {
      if (device && bytes > device)
        return Found::skipped(fmt::format("its largest buffer has {} bytes", device));
      return at_odd_places(rig, bytes, before, behind);
    });
  }
}

}  // namespace

extern const Check check = {
    "copies_megabytes",
    "copies of up to 64 MiB, and hundreds of drawn ones, move what they should and no more", run};

}  // namespace weft::conformance::checks::copies_megabytes
