#pragma once
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "../../../backends/cuda/hopper/attention_parts.hpp"

// A call of attention on the device, with numbers that are drawn there.
namespace weft::cuda::hopper {

#define TRY(call)                                                                         \
  if (const cudaError_t tried = (call); tried != cudaSuccess) {                           \
    std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(tried)); \
    std::exit(1);                                                                         \
  }
#define GOOD(call)                                     \
  if (const Outcome made = (call); !made.good()) {     \
    std::printf("%s: %s\n", #call, made.text.c_str()); \
    std::exit(1);                                      \
  }

inline int block_count = 132;

template <class T>
T* on_device(size_t n) {
  T* p = nullptr;
  TRY(cudaMalloc(&p, n * sizeof(T) + 16));
  TRY(cudaMemset(p, 0xff, n * sizeof(T)));
  return p;
}

template <class T>
__global__ void draw(T* to, int64_t n, uint32_t seed, float size) {
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < n;
       i += int64_t{gridDim.x} * blockDim.x) {
    const auto hash = [&](uint32_t x) {
      x ^= seed, x ^= x >> 16, x *= 0x7feb352dU, x ^= x >> 15, x *= 0x846ca68bU, x ^= x >> 16;
      return x;
    };
    const float a = (hash(static_cast<uint32_t>(2 * i)) >> 8) * 0x1p-24f + 0x1p-25f,
                b = (hash(static_cast<uint32_t>(2 * i + 1)) >> 8) * 0x1p-24f;
    to[i] = narrowed<T>(size * sqrtf(-2 * logf(a)) * cospif(2 * b));
  }
}

AttentionSizes sizes_of(int batch, int heads, int kv_heads, int seq_q, int seq_k, int dim, bool causal,
                        bool seq_first) {
  const auto strides = [&](int64_t h, int64_t rows) {
    return seq_first ? Strides{h * rows * dim, dim, h * dim} : Strides{h * rows * dim, rows * dim, dim};
  };
  AttentionSizes s;
  s.heads = heads, s.shared_by = heads / kv_heads, s.seq_q = seq_q, s.seq_k = seq_k, s.dim = dim;
  s.batch = batch, s.q = strides(heads, seq_q), s.k = strides(kv_heads, seq_k);
  s.scale = static_cast<float>(1 / std::sqrt(double(dim))), s.causal = causal, s.aligned = true;
  return s;
}

template <class T>
struct Problem {
  AttentionSizes s;
  T *q, *k, *v, *y;
  float* lse;
  size_t q_count() const { return size_t(s.batch) * s.heads * s.seq_q * s.dim; }
  size_t k_count() const { return size_t(s.batch) * (s.heads / s.shared_by) * s.seq_k * s.dim; }
  explicit Problem(const AttentionSizes& sizes, float size = 1) : s(sizes) {
    q = on_device<T>(q_count()), k = on_device<T>(k_count()), v = on_device<T>(k_count());
    y = on_device<T>(q_count()), lse = on_device<float>(q_count() / s.dim);
    draw<<<1024, 256>>>(q, q_count(), 1, size);
    draw<<<1024, 256>>>(k, k_count(), 2, size);
    draw<<<1024, 256>>>(v, k_count(), 3, 1.0f);
    TRY(cudaDeviceSynchronize());
  }
  Problem(const Problem&) = delete;
  ~Problem() {
    for (void* p : {(void*)q, (void*)k, (void*)v, (void*)y, (void*)lse}) cudaFree(p);
  }
};

template <class T>
std::vector<T> fetched(const T* from, size_t n) {
  std::vector<T> v(n);
  TRY(cudaMemcpy(v.data(), from, n * sizeof(T), cudaMemcpyDeviceToHost));
  return v;
}
float number(bf16 x) {
  const uint32_t u = uint32_t{x.bits} << 16;
  float f;
  std::memcpy(&f, &u, 4);
  return f;
}
float number(f16 x) {
  const int e = x.bits >> 10 & 31, m = x.bits & 1023;
  const float f = e == 0    ? std::ldexp(float(m), -24)
                  : e == 31 ? (m ? NAN : INFINITY)
                            : std::ldexp(1024.0f + m, e - 25);
  return x.bits >> 15 ? -f : f;
}

template <class Run>
double median_ms(Run run, int times = 15) {
  std::vector<cudaEvent_t> at(times + 1);
  for (auto& e : at) TRY(cudaEventCreateWithFlags(&e, cudaEventDefault));
  run();
  for (int i = 0; i <= times; ++i) {
    TRY(cudaEventRecord(at[i]));
    if (i < times) run();
  }
  TRY(cudaDeviceSynchronize());
  std::vector<float> ms(times);
  for (int i = 0; i < times; ++i) TRY(cudaEventElapsedTime(&ms[i], at[i], at[i + 1]));
  std::sort(ms.begin(), ms.end());
  return ms[times / 2];
}

}  // namespace weft::cuda::hopper
