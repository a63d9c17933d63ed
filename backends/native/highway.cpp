// What kernels ask of the library Highway: which instructions there are. The rest of it is headers. Debian
// has only a shared library of it, which no static program can use, and which measures its timer for three
// milliseconds whenever a program starts. Weak: a program that links Highway itself keeps its own.
#include <hwy/targets.h>

#include <cstdio>
#include <cstdlib>

namespace hwy {

[[gnu::weak]] int64_t SupportedTargets() {
  int64_t targets = HWY_STATIC_TARGET;
#if defined(__x86_64__)
  const auto has = [](bool all, int64_t target) { return all ? target : 0; };
  targets |= has(__builtin_cpu_supports("ssse3"), HWY_SSSE3);
  targets |= has(__builtin_cpu_supports("sse4.2"), HWY_SSE4);
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  targets |= has(avx2, HWY_AVX2);
  targets |= has(avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                     __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                     __builtin_cpu_supports("avx512cd"),
                 HWY_AVX3);
#endif
  return targets;
}

[[gnu::weak]] ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

[[gnu::weak]] void Abort(const char* file, int line, const char* format, ...) {
  std::fprintf(stderr, "%s:%d: %s\n", file, line, format);
  std::abort();
}

}  // namespace hwy
