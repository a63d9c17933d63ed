#pragma once
#include <cstddef>
#include <cstdint>

// One file for each instruction set, which includes nothing of C++: an inline function that is compiled in
// two of them would be linked once, perhaps with instructions that the processor lacks.
namespace weft {

/// Writes the low and the high half. No secret: XXH3's own.
using Hash128Kernel = void (*)(const void* bytes, size_t n, const void* secret, size_t secret_bytes,
                               uint64_t* to);
void hash128_baseline(const void* bytes, size_t n, const void* secret, size_t secret_bytes, uint64_t* to);
void hash128_avx2(const void* bytes, size_t n, const void* secret, size_t secret_bytes, uint64_t* to);

}  // namespace weft
