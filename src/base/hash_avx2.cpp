// Compiled with AVX2 where the processor may have it (CMakeLists.txt).
#if defined(__AVX2__)
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/hash_kernels.h"

namespace weft {

void hash128_avx2(const void* bytes, size_t n, const void* secret, size_t secret_bytes, uint64_t* to) {
  const XXH128_hash_t h =
      secret ? XXH3_128bits_withSecret(bytes, n, secret, secret_bytes) : XXH3_128bits(bytes, n);
  to[0] = h.low64, to[1] = h.high64;
}

}  // namespace weft
#endif
