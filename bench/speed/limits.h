#pragma once
#include <cstddef>

// What this machine can do at most, measured in the run that the figures come from.
namespace weft::speed {

/// Multiply-adds of f32 in registers, on `threads` threads: flop/s, two to a multiply-add.
double peak_flops(int threads);
/// Seconds to copy `bytes`, by the faster of memcpy and stores past the caches, on all threads of the pool.
double copy_seconds(size_t bytes);

}  // namespace weft::speed
