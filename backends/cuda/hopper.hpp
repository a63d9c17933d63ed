#pragma once
#include "hopper/barrier.hpp"
#include "hopper/tensor_copy.hpp"
#include "hopper/warpgroup.hpp"
#include "kernel.hpp"

// What only GPUs of architecture 9.0a have: barriers that count bytes, copies of tiles by the TMA unit, and
// products of warpgroups (wgmma). Thin wrappers of PTX instructions, as "PTX ISA" describes them. Files that
// include this are compiled for sm_90a alone (kernels/hopper, see CMakeLists.txt): neither an emulation on a
// CPU nor another GPU has these instructions.
