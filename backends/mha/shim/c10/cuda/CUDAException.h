#pragma once
#include "../../../check.h"

#define C10_CUDA_CHECK(...) ::weft::mha::check(__VA_ARGS__)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() ::weft::mha::check(cudaGetLastError())
