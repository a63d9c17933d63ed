#pragma once
#include <cstddef>
#include <functional>
#include <optional>

// The limits of this machine, measured in the same run as the figures.
namespace weft::lab {

/// Multiply-adds of f32 in registers, on `threads` threads: flop/s, two to a multiply-add. Empty where the
/// build had no Highway, by which they are written for each kind of processor.
std::optional<double> peak_flops(int threads);
/// Copies `bytes` by the faster of memcpy and non-temporal stores, on all threads of the pool. Empty as
/// above.
std::function<void()> best_copy(size_t bytes);

struct Limits {
  double copy = 0,
         cached_copy = 0;  ///< gigabytes a second, of memory and of a core's cache; read and written
  double gigaflops = 0;
};
/// On thread_count() threads, in about half a second.
std::optional<Limits> measure_limits();

}  // namespace weft::lab
