// Included once per instruction set, by files that hwy/foreach_target.h compiles.
#if defined(WEFT_NATIVE_HALVES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_NATIVE_HALVES_INL_H_
#undef WEFT_NATIVE_HALVES_INL_H_
#else
#define WEFT_NATIVE_HALVES_INL_H_
#endif

#include <hwy/highway.h>

#include "weft/shared/numbers.hpp"

HWY_BEFORE_NAMESPACE();
namespace weft::native {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Halves, widened to f32 as they are read. Not by the bf16 dot-product instructions, which flush subnormal
/// numbers to zero.
struct Brains {
  using Stored = uint16_t;
  static HWY_INLINE hn::Vec<hn::ScalableTag<float>> load(const uint16_t* from) {
    const hn::ScalableTag<float> d;
    const hn::Rebind<uint32_t, hn::ScalableTag<float>> du;
    const hn::Rebind<uint16_t, hn::ScalableTag<float>> dh;
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(dh, from))));
  }
  /// The first n elements, then zeros.
  static HWY_INLINE hn::Vec<hn::ScalableTag<float>> part(const uint16_t* from, int64_t n) {
    uint16_t whole[HWY_MAX_BYTES / sizeof(float)] = {};
    std::copy_n(from, n, whole);
    return load(whole);
  }
  static HWY_INLINE float one(const uint16_t* from) {
    return static_cast<float>(shared::load(shared::BFloat{*from}));
  }
};
struct Halves {
  using Stored = uint16_t;
  static HWY_INLINE hn::Vec<hn::ScalableTag<float>> load(const uint16_t* from) {
    const hn::Rebind<hwy::float16_t, hn::ScalableTag<float>> dh;
    return hn::PromoteTo(hn::ScalableTag<float>(),
                         hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(from)));
  }
  /// The first n elements, then zeros.
  static HWY_INLINE hn::Vec<hn::ScalableTag<float>> part(const uint16_t* from, int64_t n) {
    uint16_t whole[HWY_MAX_BYTES / sizeof(float)] = {};
    std::copy_n(from, n, whole);
    return load(whole);
  }
  static HWY_INLINE float one(const uint16_t* from) {
    return static_cast<float>(shared::load(shared::Half{*from}));
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace weft::native
HWY_AFTER_NAMESPACE();

#endif
