// examples/lab/softmax.cu, each of whose blocks then waits for a sixteenth of the time that it took: about 3
// percent slower, since others compute meanwhile.
//
// weft lab: a group of 256 for each row
#if !defined(OP_SOFTMAX) || INPUT0_RANK == 0 || AXIS != -1 && AXIS != INPUT0_RANK - 1 || \
    !defined(INPUT0_IS_F32)
#error weft: unsupported: it computes along the last axis, in f32
#endif

struct Larger {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};

// Joins what the 256 threads of a block have; all of them get the result.
template <class How>
__device__ float joined(float value, float* scratch, How how) {
  const int thread = threadIdx.x;
  scratch[thread] = value;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (thread < half) scratch[thread] = how(scratch[thread], scratch[thread + half]);
    __syncthreads();
  }
  const float all = scratch[0];
  __syncthreads();
  return all;
}

extern "C" __global__ void weft_lab_kernel(const float* x, float* y, long x_begins, long y_begins, int rows,
                                           int columns) {
  __shared__ float scratch[256];
  const long long began = clock64();
  const long row = blockIdx.x;
  x += x_begins + row * columns, y += y_begins + row * columns;
  float most = -__int_as_float(0x7f800000), sum = 0;
  for (int c = threadIdx.x; c < columns; c += 256) most = fmaxf(most, x[c]);
  most = joined(most, scratch, Larger());
  for (int c = threadIdx.x; c < columns; c += 256) sum += expf(x[c] - most);
  sum = joined(sum, scratch, Sum());
  for (int c = threadIdx.x; c < columns; c += 256) y[c] = expf(x[c] - most) / sum;
  const long long took = clock64() - began;
  while (clock64() - began < took + took / 16) {
  }
}
