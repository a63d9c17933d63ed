#pragma once
#include "language.hpp"
#include "steps.hpp"

// Exchange memory of a chain (steps.hpp): all its bits are ones until a step writes an element.
namespace weft::cuda::chains {

/// An element of 2 bytes that nobody has written yet; one of 4 has all ones, too.
constexpr uint16_t kAwaited = 0xffff;

/// Whether any of 8 elements of 2 bytes is still to come.
__device__ inline bool is_awaited(const Words& b) {
  bool awaited = false;
#pragma unroll
  for (const uint32_t pair : b.of) awaited = awaited || pair >> 16 == kAwaited || (pair & 0xffff) == kAwaited;
  return awaited;
}

/// The memory of this launch.
struct Exchange {
  char* own;

  /// Where a source's elements are. Those from outside of the chain are there.
  struct Place {
    const char* from;
    bool outside;
  };
  __device__ Place place_of(const Source& s) const {
    return s.place < 0 ? Place{static_cast<const char*>(s.plain), true} : Place{own + s.place, false};
  }
  __device__ float take_one(const Source& from, Format format, int64_t at) const {
    if (from.place < 0) return skinny::loaded(from.plain, format, at);
    if (format == Format::f32) return take_float(from.place + at * 4);
    uint16_t h;
    do h = load_now<uint16_t>(own + from.place + at * 2);
    while (h == kAwaited);
    return format == Format::bf16 ? widened(bf16{h}) : widened(f16{h});
  }
  __device__ float take_float(int64_t place) const {
    uint32_t w;
    do w = load_now<uint32_t>(own + place);
    while (w == ~0u);
    return as_float(w);
  }
  __device__ void put_float(int64_t place, float x) const {
    const uint32_t w = as_bits(x);
    store_now(own + place, w == ~0u ? w >> 1 : w);
  }
  __device__ void put(const Target& to, Format format, int64_t at, float x) const {
    if (to.plain) skinny::stored(to.plain, format, at, x);
    if (to.place < 0) return;
    if (format == Format::f32) return put_float(to.place + at * 4, x);
    const uint16_t h = format == Format::bf16 ? narrowed<bf16>(x).bits : narrowed<f16>(x).bits;
    store_now(own + to.place + at * 2, h == kAwaited ? uint16_t{0x7fff} : h);
  }
};

}  // namespace weft::cuda::chains
