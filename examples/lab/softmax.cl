// A plain softmax over the last axis in OpenCL C, for the kernel lab (docs/lab.md):
//
//   weft lab opencl examples/lab/softmax.cl --ops softmax
//
// weft lab: a group of 64 for each row
#if !defined(OP_SOFTMAX) || INPUT0_RANK == 0 || AXIS != -1 && AXIS != INPUT0_RANK - 1 || !defined(INPUT0_IS_F32)
#error weft: unsupported: it computes along the last axis, in f32
#endif

// Joins what the 64 items of a group have; all of them get the result.
#define JOIN(value, how)                          \
  scratch[item] = value;                          \
  for (int step = 32; step > 0; step /= 2) {      \
    barrier(CLK_LOCAL_MEM_FENCE);                 \
    const float joined = how(scratch[item], scratch[item ^ step]); \
    barrier(CLK_LOCAL_MEM_FENCE);                 \
    scratch[item] = joined;                       \
  }                                               \
  value = scratch[item]
#define PLUS(a, b) ((a) + (b))

__kernel void weft_lab_kernel(__global const float* x, __global float* y, long x_begins, long y_begins, int rows,
                              int columns) {
  __local float scratch[64];
  const int item = get_local_id(0);
  const long row = get_group_id(0);
  x += x_begins + row * columns, y += y_begins + row * columns;
  float most = -INFINITY, sum = 0;
  for (int c = item; c < columns; c += 64) most = fmax(most, x[c]);
  JOIN(most, fmax);
  for (int c = item; c < columns; c += 64) sum += exp(x[c] - most);
  JOIN(sum, PLUS);
  for (int c = item; c < columns; c += 64) y[c] = exp(x[c] - most) / sum;
}
