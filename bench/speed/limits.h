#pragma once
#include <cstddef>
#include <functional>

// The limits of this machine, measured in the same run as the figures.
namespace weft::speed {

/// Multiply-adds of f32 in registers, on `threads` threads: flop/s, two to a multiply-add.
double peak_flops(int threads);
/// Copies `bytes` by the faster of memcpy and non-temporal stores, on all threads of the pool.
std::function<void()> best_copy(size_t bytes);

}  // namespace weft::speed
