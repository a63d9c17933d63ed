#pragma once
#include <cstddef>
#include <functional>

// What this machine can do at most, measured in the run that the figures come from.
namespace weft::speed {

/// Multiply-adds of f32 in registers, on `threads` threads: flop/s, two to a multiply-add.
double peak_flops(int threads);
/// Copies `bytes` by the faster of memcpy and stores past the caches, on all threads of the pool.
std::function<void()> best_copy(size_t bytes);

}  // namespace weft::speed
