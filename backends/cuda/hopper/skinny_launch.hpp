#pragma once
#include <optional>

#include "../device.hpp"

namespace weft::cuda::skinny {

struct Items;

/// Launches products of 2 to 16 rows as skinny_ring.hpp has them, if they are for it and the device has what
/// that takes.
#if defined(WEFT_EMULATED) || defined(WEFT_HIP)
template <class T>
std::optional<Outcome> run_ring(Queue&, const Items&) {
  return std::nullopt;
}
#else
template <class T>  // f16 or bf16
std::optional<Outcome> run_ring(Queue&, const Items&);
#endif

}  // namespace weft::cuda::skinny
