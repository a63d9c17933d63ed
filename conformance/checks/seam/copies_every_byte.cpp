#include <cstring>

#include "conformance/check.h"
#include "conformance/seam/usual.h"

namespace weft::conformance::checks::copies_every_byte {
namespace {

std::vector<std::byte> pattern(size_t n, int seed) {
  std::vector<std::byte> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = static_cast<std::byte>(i * 7 + static_cast<size_t>(seed));
  return v;
}

Found round_trip(Rig& rig, size_t n) {
  const auto a = value_or_raise(rig.device.allocate_unpooled(n));
  const auto bytes = pattern(n, 1);
  raise_if(rig.queue->copy_in(*a.get(), 0, bytes.data(), n));
  std::vector<std::byte> back(n);
  raise_if(rig.queue->copy_out(back.data(), *a.get(), 0, n));
  raise_if(rig.queue->synchronize());
  for (size_t i = 0; i < n; ++i)
    if (back[i] != bytes[i]) return Found::wrong(fmt::format("byte {} of {} is another one", i, n));
  return {};
}

// Into the middle of a buffer, or out of it: the bytes around stay, and the host side has no offset.
Found between_host(Rig& rig, size_t offset, size_t n, bool in) {
  constexpr size_t kBytes = 256;
  const auto a = value_or_raise(rig.device.allocate_unpooled(kBytes));
  const auto whole = pattern(kBytes, 1), part = pattern(n, 90);
  raise_if(rig.queue->copy_in(*a.get(), 0, whole.data(), kBytes));
  auto want = whole, got = whole;
  if (in) {
    raise_if(rig.queue->copy_in(*a.get(), offset, part.data(), n));
    std::ranges::copy(part, want.begin() + static_cast<std::ptrdiff_t>(offset));
    raise_if(rig.queue->copy_out(got.data(), *a.get(), 0, kBytes));
  } else {
    got.assign(kBytes, std::byte{0});
    want = got;
    std::memcpy(want.data(), &whole[offset], n);
    raise_if(rig.queue->copy_out(got.data(), *a.get(), offset, n));
  }
  raise_if(rig.queue->synchronize());
  for (size_t i = 0; i < kBytes; ++i)
    if (got[i] != want[i])
      return Found::wrong(fmt::format("{} bytes {} {}: byte {} is wrong", n, in ? "to" : "from", offset, i));
  return {};
}

// From the middle of one buffer into the middle of another; the bytes around stay.
Found within(Rig& rig, size_t from, size_t to, size_t n) {
  constexpr size_t kBytes = 256;
  const auto a = value_or_raise(rig.device.allocate_unpooled(kBytes)),
             b = value_or_raise(rig.device.allocate_unpooled(kBytes));
  const auto source = pattern(kBytes, 1);
  auto want = pattern(kBytes, 90);
  raise_if(rig.queue->copy_in(*a.get(), 0, source.data(), kBytes));
  raise_if(rig.queue->copy_in(*b.get(), 0, want.data(), kBytes));
  raise_if(rig.queue->copy(*b.get(), to, *a.get(), from, n));
  std::memcpy(&want[to], &source[from], n);
  std::vector<std::byte> got(kBytes);
  raise_if(rig.queue->copy_out(got.data(), *b.get(), 0, kBytes));
  raise_if(rig.queue->synchronize());
  for (size_t i = 0; i < kBytes; ++i)
    if (got[i] != want[i])
      return Found::wrong(fmt::format("{} bytes from {} to {}: byte {} is wrong", n, from, to, i));
  return {};
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  for (const size_t n : {1, 3, 4, 7, 8, 15, 17, 63, 64, 65, 1000, 4097, 100'003})
    run.run(fmt::format("in and out, {} bytes", n), [&] { return round_trip(rig, n); });
  for (const auto& [offset, n] :
       {std::pair<size_t, size_t>{0, 256}, {8, 100}, {12, 101}, {64, 192}, {100, 1}, {5, 77}})
    for (const bool in : {true, false})
      run.run(fmt::format("{}, {} bytes {} {}", in ? "in" : "out", n, in ? "to" : "from", offset),
              [&] { return between_host(rig, offset, n, in); });
  for (const auto& [from, to, n] : {std::tuple<size_t, size_t, size_t>{0, 0, 256},
                                    {8, 0, 100},
                                    {0, 12, 101},
                                    {16, 32, 7},
                                    {100, 4, 1},
                                    {3, 5, 77}})
    run.run(fmt::format("within, {} bytes from {} to {}", n, from, to),
            [&] { return within(rig, from, to, n); });
}

}  // namespace

extern const Check check = {"copies_every_byte",
                            "copies move all bytes that they were asked to, and no other", run};

}  // namespace weft::conformance::checks::copies_every_byte
