#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/hash_kernels.h"

namespace weft {

static_assert(kHashSecret == XXH3_SECRET_DEFAULT_SIZE);

void hash128_baseline(const void* bytes, size_t n, const void* secret, size_t secret_bytes, uint64_t* to) {
  const XXH128_hash_t h =
      secret ? XXH3_128bits_withSecret(bytes, n, secret, secret_bytes) : XXH3_128bits(bytes, n);
  to[0] = h.low64, to[1] = h.high64;
}

static Hash128Kernel best_kernel() {
#if defined(WEFT_HASH_AVX2)
  if (__builtin_cpu_supports("avx2")) return hash128_avx2;
#endif
  return hash128_baseline;
}

static Hash128 hash(std::span<const std::byte> bytes, const void* secret, size_t secret_bytes) {
  static const Hash128Kernel kernel = best_kernel();
  uint64_t made[2];
  kernel(bytes.data(), bytes.size(), secret, secret_bytes, made);
  return {made[0], made[1]};
}

Hash128 hash128(std::span<const std::byte> bytes) { return hash(bytes, nullptr, 0); }
Hash128 hash128(std::span<const std::byte> bytes, std::span<const std::byte> secret) {
  return hash(bytes, secret.data(), secret.size());
}

void hash128_secret(std::span<const std::byte> seed, std::span<std::byte, kHashSecret> secret) {
  XXH3_generateSecret(secret.data(), secret.size(), seed.data(), seed.size());
}

}  // namespace weft
