#include "lab/results/limits.h"

#ifdef WEFT_HIGHWAY
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "base/thread_pool.h"

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/lab/results/limits.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace weft::lab {
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
void copy_in_cache(const float* from, float* to, size_t n) {
  const hn::ScalableTag<float> d;
  for (size_t i = 0; i < n; i += hn::Lanes(d)) hn::Store(hn::Load(d, from + i), d, to + i);
}

}  // namespace HWY_NAMESPACE
}  // namespace weft::lab
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::lab {

HWY_EXPORT(multiply_adds);
HWY_EXPORT(copy_past_caches);
HWY_EXPORT(copy_in_cache);

using Buffer = std::unique_ptr<float, void (*)(void*)>;
static Buffer buffer_of(size_t n) {
  return {static_cast<float*>(std::aligned_alloc(64, n * sizeof(float))), std::free};
}

// Of a run, over about this many seconds: other work on the machine makes some runs slower, and none faster.
static double least_seconds(const std::function<void()>& run, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point t) {
    return std::chrono::duration<double>(Clock::now() - t).count();
  };
  const auto all = Clock::now();
  run();  // to warm up
  double least = INFINITY;
  do {
    const auto began = Clock::now();
    run();
    least = std::min(least, since(began));
  } while (since(all) < seconds);
  return least;
}

// Runs on this thread and on others.
static void on_threads(int threads, const std::function<void()>& run) {
  std::vector<std::jthread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(run);
  run();
}

std::optional<double> peak_flops(int threads) {
  constexpr long kSteps = 2'000'000;
  std::atomic<double> flops = 0;  // of a thread
  const auto run = [&] { flops = HWY_DYNAMIC_DISPATCH(multiply_adds)(kSteps); };
  const double seconds = least_seconds([&] { on_threads(threads, run); }, 0.1);
  return threads * flops / seconds;
}

std::function<void()> best_copy(size_t bytes) {
  struct Copy {
    Buffer from, to;
    bool past = false;
  };
  const size_t n = bytes / 4;
  const auto copy = std::make_shared<Copy>(Copy{buffer_of(n), buffer_of(n)});
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
  const double plain = least_seconds(run, 0.05);
  copy->past = true;
  copy->past = least_seconds(run, 0.05) < plain;
  return run;
}

// Bytes a second that the threads read and write, each in its own cache of the second level.
static double cached_copy_rate(int threads) {
  constexpr size_t kCount = 16 << 10, kTimes = 2000,
                   kApart = 512;  // of the same places in pages it would be slow
  const auto copy = [] {
    const auto memory = buffer_of(2 * kCount + kApart);
    std::fill_n(memory.get(), 2 * kCount + kApart, 1.0f);
    float* to = memory.get() + kCount + kApart;
    for (size_t i = 0; i < kTimes; ++i) {
      HWY_DYNAMIC_DISPATCH(copy_in_cache)(memory.get(), to, kCount);
      asm volatile("" : : "r"(to) : "memory");  // each copy is wanted
    }
  };
  const double bytes = 2.0 * sizeof(float) * kCount * kTimes * threads;
  return bytes / least_seconds([&] { on_threads(threads, copy); }, 0.1);
}

std::optional<Limits> measure_limits() {
  constexpr size_t kBytes = 64 << 20;  // and as many to write: more than caches hold
  const int threads = thread_count();
  return Limits{.copy = 2e-9 * kBytes / least_seconds(best_copy(kBytes), 0.1),
                .cached_copy = 1e-9 * cached_copy_rate(threads),
                .gigaflops = 1e-9 * *peak_flops(threads)};
}

}  // namespace weft::lab
#endif
#else
namespace weft::lab {

std::optional<double> peak_flops(int) { return {}; }
std::function<void()> best_copy(size_t) { return {}; }
std::optional<Limits> measure_limits() { return {}; }

}  // namespace weft::lab
#endif
