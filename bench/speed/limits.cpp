#include "limits.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "base/thread_pool.h"
#include "measure.h"

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/speed/limits.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace weft::speed {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Twelve chains hide the latency of two multiply-adds a cycle, and fit sixteen registers.
double multiply_adds(long n) {
  const hn::ScalableTag<float> d;
  const auto x = hn::Set(d, 0.999f), y = hn::Set(d, 1e-3f);
  // Each starts with another value: equal chains would be computed once.
  const auto at = [&](float v) HWY_ATTR { return hn::Set(d, v); };
  auto a = at(1), b = at(2), c = at(3), e = at(4), f = at(5), g = at(6), h = at(7), i = at(8), j = at(9),
       k = at(10), l = at(11), m = at(12);
  for (long t = 0; t < n; ++t) {
    a = hn::MulAdd(a, x, y), b = hn::MulAdd(b, x, y), c = hn::MulAdd(c, x, y), e = hn::MulAdd(e, x, y);
    f = hn::MulAdd(f, x, y), g = hn::MulAdd(g, x, y), h = hn::MulAdd(h, x, y), i = hn::MulAdd(i, x, y);
    j = hn::MulAdd(j, x, y), k = hn::MulAdd(k, x, y), l = hn::MulAdd(l, x, y), m = hn::MulAdd(m, x, y);
  }
  const auto sum =
      hn::Add(hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)), hn::Add(hn::Add(f, g), hn::Add(h, i))),
              hn::Add(hn::Add(j, k), hn::Add(l, m)));
  volatile float kept = hn::GetLane(sum);
  (void)kept;
  return 2.0 * 12 * static_cast<double>(hn::Lanes(d)) * static_cast<double>(n);
}
void copy_past_caches(const float* from, float* to, size_t n) {
  const hn::ScalableTag<float> d;
  for (size_t i = 0; i < n; i += hn::Lanes(d)) hn::Stream(hn::Load(d, from + i), d, to + i);
  hwy::FlushStream();
}

}  // namespace HWY_NAMESPACE
}  // namespace weft::speed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::speed {

HWY_EXPORT(multiply_adds);
HWY_EXPORT(copy_past_caches);

double peak_flops(int threads) {
  constexpr long kSteps = 2'000'000;
  double flops = 0;
  const double t = time_of({[&] {
                             std::vector<std::jthread> others;
                             for (int i = 1; i < threads; ++i)
                               others.emplace_back([] { HWY_DYNAMIC_DISPATCH(multiply_adds)(kSteps); });
                             flops = HWY_DYNAMIC_DISPATCH(multiply_adds)(kSteps) * threads;
                           }},
                           0.05);
  return flops / t;
}

std::function<void()> best_copy(size_t bytes) {
  struct Copy {
    std::unique_ptr<float, void (*)(void*)> from, to;
    bool past = false;
  };
  const size_t n = bytes / 4;
  const auto buffer = [n] {
    return std::unique_ptr<float, void (*)(void*)>(static_cast<float*>(std::aligned_alloc(64, n * 4)),
                                                   std::free);
  };
  const auto copy = std::make_shared<Copy>(Copy{buffer(), buffer()});
  std::fill_n(copy->from.get(), n, 1.0f), std::fill_n(copy->to.get(), n, 2.0f);
  const auto run = [copy, n] {
    parallel_for(
        static_cast<int64_t>(n / 4096), 16,
        [](void* raw, int64_t begin, int64_t end) {
          const auto& c = *static_cast<Copy*>(raw);
          const auto count = static_cast<size_t>(end - begin) * 4096;
          const float* from = c.from.get() + begin * 4096;
          float* to = c.to.get() + begin * 4096;
          if (c.past) return HWY_DYNAMIC_DISPATCH(copy_past_caches)(from, to, count);
          std::memcpy(to, from, count * 4);
        },
        copy.get());
  };
  const double plain = time_of({run}, 0.1);
  copy->past = true;
  copy->past = time_of({run}, 0.1) < plain;
  return run;
}

}  // namespace weft::speed
#endif
