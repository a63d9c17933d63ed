#pragma once
#include "../../../backends/cuda/hopper/attention_forward.hpp"
#include "problem.hpp"

// The forward pass: its answers beside those of a plain kernel in f64, and its speed.
namespace weft::cuda::hopper {

/// Results of one row in f64, the sum of |weight v| of each, and lse. A block for each of `count` rows.
template <class T>
__global__ void plain_row(AttentionSizes s, const T* q, const T* k, const T* v, int64_t step, double* y,
                          double* size, double* lse) {
  extern __shared__ double scores[];
  __shared__ double total, most;
  const int64_t row = blockIdx.x * step;
  const int query = row % s.seq_q, head = row / s.seq_q % s.heads;
  const int64_t member = row / s.seq_q / s.heads;
  const T* from = q + member * s.q.batch + head * s.q.head + query * s.q.row;
  const int64_t at_k = member * s.k.batch + head / s.shared_by * s.k.head;
  const int n = s.visible(query);
  for (int j = threadIdx.x; j < n; j += blockDim.x) {
    double sum = 0;
    for (int d = 0; d < s.dim; ++d) sum += double(widened(from[d])) * widened(k[at_k + j * s.k.row + d]);
    scores[j] = sum * s.scale;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    most = -INFINITY, total = 0;
    for (int j = 0; j < n; ++j) most = scores[j] > most ? scores[j] : most;
    for (int j = 0; j < n; ++j) total += exp(scores[j] - most);
    lse[blockIdx.x] = most + log(total);
  }
  __syncthreads();
  for (int d = threadIdx.x; d < s.dim; d += blockDim.x) {
    double sum = 0, sizes = 0;
    for (int j = 0; j < n; ++j) {
      const double p = exp(scores[j] - most) / total, value = widened(v[at_k + j * s.k.row + d]);
      sum += p * value, sizes += p * fabs(value);
    }
    y[blockIdx.x * s.dim + d] = sum, size[blockIdx.x * s.dim + d] = sizes;
  }
}

template <class F, class T = typename F::Element>
void launch(const Problem<T>& p) {
  constexpr DType type = std::is_same_v<T, bf16> ? DType::bf16 : DType::f16;
  ForwardMaps maps;
  GOOD(forward_maps<F>(maps, nullptr, type, p.q, p.k, p.v, p.y, p.s));
  const ForwardWork work = forward_work<F>(p.s, p.lse);
  static const bool once = [] {
    TRY(cudaFuncSetAttribute(attention_of_groups<F>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             F::kShared));
    return true;
  }();
  (void)once;
  attention_of_groups<F><<<std::min(block_count, work.order.count()), F::kThreads, F::kShared>>>(maps, work);
  TRY(cudaGetLastError());
}

template <class F, class T = typename F::Element>
void check(const char* name, const AttentionSizes& s, float size = 1) {
  Problem<T> p(s, size);
  launch<F>(p);
  TRY(cudaDeviceSynchronize());
  const int64_t rows = s.batch * s.heads * s.seq_q, step = std::max<int64_t>(1, rows / 4096) | 1,
                count = (rows + step - 1) / step;
  auto *y = on_device<double>(count * s.dim), *sizes = on_device<double>(count * s.dim),
       *lse = on_device<double>(count);
  TRY(cudaFuncSetAttribute(plain_row<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, 160 << 10));
  plain_row<T><<<count, 128, s.seq_k * sizeof(double)>>>(s, p.q, p.k, p.v, step, y, sizes, lse);
  TRY(cudaDeviceSynchronize());
  const auto want = fetched(y, count * s.dim), term = fetched(sizes, count * s.dim),
             want_lse = fetched(lse, count);
  const auto got = fetched(p.y, p.q_count());
  const auto got_lse = fetched(p.lse, rows);
  double worst = 0, most = 0, worst_lse = 0;
  int64_t wrong = 0, first_wrong = -1;
  const double digits = std::is_same_v<T, bf16> ? 8 : 11;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = i * step, query = row % s.seq_q, head = row / s.seq_q % s.heads,
                  member = row / s.seq_q / s.heads;
    const bool empty = s.causal && query + 1 + s.seq_k - s.seq_q <= 0;
    for (int d = 0; d < s.dim; ++d) {
      const double w = empty ? 0 : want[i * s.dim + d];
      const double g = number(got[member * s.q.batch + head * s.q.head + query * s.q.row + d]);
      const double off = std::fabs(g - w);
      const double half_ulp =
          w == 0 ? 0 : std::ldexp(1.0, int(std::floor(std::log2(std::fabs(w)))) - int(digits));
      const double bound = half_ulp + 2 * s.seq_k * 0x1p-24 * (empty ? 0 : term[i * s.dim + d]) + 1e-7;
      if (!(off <= bound)) {
        if (wrong++ == 0) first_wrong = i * s.dim + d;
      }
      most = std::max(most, std::isfinite(off) ? off : 1e30);
      worst = std::max(worst, std::isfinite(off) ? off / bound : 1e30);
    }
    const double l = empty ? -INFINITY : want_lse[i];
    if (!(got_lse[row] == l)) {
      const double off = std::fabs(got_lse[row] - l);
      worst_lse = std::max(worst_lse, std::isfinite(off) ? off : 1e30);
    }
  }
  std::printf("%-22s b%d h%d/%d q%d k%d d%d %s: max error %.3g, %.2f of a bound, beyond %ld of %ld, lse %.2g",
              name, int(s.batch), s.heads, s.heads / s.shared_by, s.seq_q, s.seq_k, s.dim,
              s.causal ? "causal" : "full", most, worst, long(wrong), long(count * s.dim), worst_lse);
  if (wrong > 0) {
    const int64_t row = first_wrong / s.dim * step;
    std::printf("; first: query %ld head %ld column %ld, want %.6g", long(row % s.seq_q), long(row / s.seq_q),
                long(first_wrong % s.dim), want[first_wrong]);
  }
  std::printf("\n");
  for (auto* x : {y, sizes, lse}) cudaFree(x);
}

double products(const AttentionSizes& s) {
  return 4.0 * s.batch * s.heads * s.seq_q * double(s.seq_k) * s.dim / (s.causal ? 2 : 1);
}

template <class F, class T = typename F::Element>
void measure(const char* name, const Problem<T>& p) {
  const double ms = median_ms([&] { launch<F>(p); });
  std::printf("  %-22s %8.4f ms  %6.1f TFLOP/s\n", name, ms, products(p.s) / ms * 1e-9);
}

template <class T, int kParts>
using Wide = Forward<T, 128, 2, 128, 2, kParts>;
template <class T, int kParts>
using Narrow = Forward<T, 64, 2, 128, 2, kParts>;

template <class F>
void check_sizes(const char* name) {
  const int d = F::kD;
  check<F>(name, sizes_of(1, 1, 1, 128, 256, d, false, false));
  check<F>(name, sizes_of(2, 3, 3, 384, 384, d, true, false));
  check<F>(name, sizes_of(1, 4, 2, 301, 517, d, true, true));
  check<F>(name, sizes_of(2, 6, 2, 517, 301, d, true, true));
  check<F>(name, sizes_of(3, 2, 1, 65, 1000, d - 8, false, true));
  check<F>(name, sizes_of(2, 40, 40, 777, 777, d, true, true), 3);
}

void check_all() {
  check_sizes<Wide<bf16, 1>>("bf16 128 one part");
  check_sizes<Wide<bf16, 2>>("bf16 128 two parts");
  check_sizes<Narrow<bf16, 1>>("bf16 64 one part");
  check_sizes<Narrow<bf16, 2>>("bf16 64 two parts");
  check_sizes<Wide<f16, 1>>("f16 128 one part");
  check_sizes<Narrow<f16, 2>>("f16 64 two parts");
}

void measure_all() {
  for (const bool causal : {true, false})
    for (const int seq : {1024, 4096, 16384}) {
      const Problem<bf16> p(sizes_of(16384 / seq, 16, 16, seq, seq, 128, causal, false));
      std::printf("forward, bf16, 128 wide, %d x 16 heads x %d, %s\n", 16384 / seq, seq,
                  causal ? "causal" : "full");
      for (int again = 0; again < 2; ++again) {
        measure<Wide<bf16, 1>>("one part", p);
        measure<Forward<bf16, 128, 2, 128, 2, 1, false>>("one part, no turns", p);
        measure<Wide<bf16, 2>>("two parts", p);
        measure<Forward<bf16, 128, 2, 128, 2, 2, false>>("two parts, no turns", p);
      }
    }
  for (const bool seq_first : {true, false})
    for (const int seq : {1024, 4096}) {
      const Problem<bf16> p(sizes_of(32 * 1024 / seq, 12, 12, seq, seq, 64, true, seq_first));
      std::printf("forward, bf16, 64 wide, %d x 12 heads x %d, causal%s\n", 32 * 1024 / seq, seq,
                  seq_first ? ", seq first" : "");
      for (int again = 0; again < 2; ++again) {
        measure<Narrow<bf16, 1>>("one part", p);
        measure<Forward<bf16, 64, 2, 128, 2, 1, false>>("one part, no turns", p);
        measure<Narrow<bf16, 2>>("two parts", p);
        measure<Forward<bf16, 64, 2, 128, 4, 2, false>>("two parts, no turns", p);
      }
    }
}

}  // namespace weft::cuda::hopper
