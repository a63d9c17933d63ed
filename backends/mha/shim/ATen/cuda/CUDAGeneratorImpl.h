#pragma once

// What flash-attn's headers want of PyTorch, so that they are compiled without it. This: the state of a
// random generator, which only dropout reads.
namespace at {

struct PhiloxCudaState {};

}  // namespace at
