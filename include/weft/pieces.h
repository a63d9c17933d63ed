#pragma once
#include <functional>

#include "weft/tensor.h"

namespace weft {

/// Writes the bytes of slices `first` and on along a tensor's first axis, as many as `piece` has room for.
using FillPiece = std::function<void(int64_t first, std::span<std::byte> piece)>;
/// A tensor from pieces of about a MiB, in order: what is read from a file or converted is never in host
/// memory as a whole beside it.
///
/// Errors   as Tensor::from_bytes(), and what `fill` raises.
Tensor tensor_from_pieces(const FillPiece& fill, std::span<const int64_t> shape, DType dtype,
                          const std::string& backend = "");

/// What tells the memory that a tensor's elements lie in: the same of tensors that share it, as t and
/// t.detach() do, so that an update of one is seen in the other. Null for a tensor without elements, inside a
/// trace.
const void* memory_of(const Tensor& t);

}  // namespace weft
