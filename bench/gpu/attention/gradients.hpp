#pragma once
#include "../../../backends/cuda/hopper/attention_backward.hpp"
#include "../../../backends/cuda/hopper/attention_backward_rows.hpp"
#include "forward.hpp"

// The gradients: their answers beside those of plain kernels in f64, and their speed.
namespace weft::cuda::hopper {

template <class T>
struct GradientProblem : Problem<T> {
  T *dy, *dq, *dk, *dv;
  float* workspace;
  explicit GradientProblem(const AttentionSizes& sizes, float size = 1) : Problem<T>(sizes, size) {
    const size_t nq = this->q_count(), nk = this->k_count();
    dy = on_device<T>(nq), dq = on_device<T>(nq), dk = on_device<T>(nk), dv = on_device<T>(nk);
    workspace = on_device<float>(2 * nq + (int64_t{1} << 20) * sizes.heads * sizes.batch / 8);
    draw<<<1024, 256>>>(dy, nq, 4, 1.0f);
    TRY(cudaDeviceSynchronize());
  }
  ~GradientProblem() {
    for (void* p : {(void*)dy, (void*)dq, (void*)dk, (void*)dv, (void*)workspace}) cudaFree(p);
  }
};

enum class Part { all, before, products, after };

template <class B, class T = typename B::Element>
void launch_gradients(const GradientProblem<T>& p, Part part = Part::all) {
  BackwardMaps maps;
  GOOD(backward_maps<B>(maps, nullptr, DType::bf16, p.q, p.k, p.v, p.dy, p.dk, p.dv, p.s));
  const BackwardWork work = backward_work<B>(p.s, p.workspace, false);
  static const bool once = [] {
    TRY(cudaFuncSetAttribute(attention_gradients<B>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             B::kShared));
    return true;
  }();
  (void)once;
  const int64_t rows = p.s.batch * p.s.heads * int64_t{work.q_tiles} * B::kQueries;
  if (part == Part::all || part == Part::before)
    prepare_rows<B>
        <<<(rows * (B::kD / 8) + kRowThreads - 1) / kRowThreads, kRowThreads>>>(p.y, p.dy, p.lse, work);
  if (part == Part::all || part == Part::products)
    attention_gradients<B>
        <<<std::min(block_count, work.order.count()), B::kThreads, B::kShared>>>(maps, work);
  if (part == Part::all || part == Part::after)
    narrow_queries<B><<<p.s.batch * p.s.heads * work.q_tiles * B::kPieces, kGroupThreads>>>(p.dq, work);
  TRY(cudaGetLastError());
}

/// Weights, gradients of scores, and what the roundings of these are counted by, in f64: [heads, seq_q,
/// seq_k].
template <class T>
__global__ void plain_scores(AttentionSizes s, const T* q, const T* k, const T* v, const T* y, const T* dy,
                             const float* lse, double* weights, double* ds, double* size) {
  const int query = blockIdx.x, head = blockIdx.y;
  const int64_t at = head / s.heads * s.q.batch + head % s.heads * s.q.head + query * s.q.row,
                at_k = head / s.heads * s.k.batch + head % s.heads / s.shared_by * s.k.head;
  for (int j = threadIdx.x; j < s.seq_k; j += blockDim.x) {
    double score = 0, dp = 0, terms = 0;
    for (int d = 0; d < s.dim; ++d) {
      const double g = widened(dy[at + d]), value = widened(v[at_k + j * s.k.row + d]),
                   out = widened(y[at + d]);
      score += double(widened(q[at + d])) * widened(k[at_k + j * s.k.row + d]);
      dp += g * (value - out), terms += fabs(g * value) + fabs(g * out);
    }
    const double w = j < s.visible(query) ? exp(score * s.scale - lse[head * s.seq_q + query]) : 0;
    const int64_t i = (int64_t{head} * s.seq_q + query) * s.seq_k + j;
    weights[i] = w, ds[i] = w * dp, size[i] = w * terms;
  }
}

/// Row `blockIdx.x` of a gradient: sums over `n` of factor * with, and their bound. Of dq, n is keys; else
/// the queries of all heads that share the key.
template <class T>
__global__ void plain_sums(AttentionSizes s, bool of_keys, const double* factor, const double* size,
                           const T* with, double scale, double* sum, double* bound) {
  const int row = blockIdx.x, head = blockIdx.y, d = threadIdx.x;
  const int shared = of_keys ? s.shared_by : 1, n = of_keys ? s.seq_q : s.seq_k,
            kv_heads = s.heads / s.shared_by;
  double total = 0, terms = 0, wide = 0;
  if (d >= s.dim) return;
  for (int h = 0; h < shared; ++h)
    for (int j = 0; j < n; ++j) {
      const int member = of_keys ? head / kv_heads : head / s.heads;
      const int64_t q_head = of_keys ? int64_t{member} * s.heads + head % kv_heads * s.shared_by + h : head;
      const int64_t i = (q_head * s.seq_q + (of_keys ? j : row)) * s.seq_k + (of_keys ? row : j);
      const int64_t at = of_keys
                             ? member * s.q.batch + q_head % s.heads * s.q.head + j * s.q.row
                             : member * s.k.batch + q_head % s.heads / s.shared_by * s.k.head + j * s.k.row;
      const double x = widened(with[at + d]) * scale;
      total += factor[i] * x, terms += fabs(factor[i] * x), wide += size ? fabs(size[i] * x) : 0;
    }
  const int64_t to = (int64_t{head} * (of_keys ? s.seq_k : s.seq_q) + row) * s.dim + d;
  sum[to] = total, bound[to] = (2.0 * n * shared + s.dim) * 0x1p-24 * terms + s.dim * 0x1p-24 * wide;
}

template <class T>
void compare(const char* what, const AttentionSizes& s, bool of_keys, const T* device, const double* sum,
             const double* bound) {
  const int heads = s.batch * s.heads / (of_keys ? s.shared_by : 1), rows = of_keys ? s.seq_k : s.seq_q,
            of_member = heads / s.batch;
  const Strides& by = of_keys ? s.k : s.q;
  const size_t n = size_t(heads) * rows * s.dim;
  const auto got = fetched(device, n);
  const auto want = fetched(sum, n), allowed = fetched(bound, n);
  double errors = 0, squares = 0, worst = 0;
  size_t wrong = 0, off = 0, first = n;
  for (size_t i = 0; i < n; ++i) {
    const int64_t d = i % s.dim, row = i / s.dim % rows, head = i / s.dim / rows;
    const double g = number(got[head / of_member * by.batch + head % of_member * by.head + row * by.row + d]),
                 w = want[i], e = std::isfinite(g) ? std::fabs(g - w) : 1e3;
    const double half_ulp = w == 0 ? 0 : std::ldexp(1.0, int(std::floor(std::log2(std::fabs(w)))) - 8);
    errors += e * e, squares += w * w, worst = std::max(worst, e / (half_ulp + allowed[i] + 1e-30));
    wrong += e > half_ulp + allowed[i];
    if (e > 0.02 * std::fabs(w) + 0.02 && off++ == 0) first = i;
  }
  std::printf("  %s: rms error %.2e of rms, %.2f of a bound, beyond %zu of %zu", what,
              std::sqrt(errors / squares), worst, wrong, n);
  if (off > 0)
    std::printf("; far off %zu, first head %zu row %zu column %zu, want %.5g", off, first / s.dim / rows,
                first / s.dim % rows, first % s.dim, want[first]);
  std::printf("\n");
}

template <class B, class T = typename B::Element>
void check_gradients(const char* name, const AttentionSizes& s, float size = 1) {
  GradientProblem<T> p(s, size);
  if constexpr (B::kD == 128)
    launch<Forward<T, 128, 2, 128, 2, 2>>(p);
  else
    launch<Forward<T, 64, 2, 128, 2, 2>>(p);
  launch_gradients<B>(p);
  TRY(cudaDeviceSynchronize());
  std::printf("%s b%d h%d/%d q%d k%d d%d %s\n", name, int(s.batch), s.heads, s.heads / s.shared_by, s.seq_q,
              s.seq_k, s.dim, s.causal ? "causal" : "full");
  const size_t scores = size_t(s.batch) * s.heads * s.seq_q * s.seq_k,
               most = std::max(p.q_count(), p.k_count());
  auto *weights = on_device<double>(scores), *ds = on_device<double>(scores),
       *sizes = on_device<double>(scores), *sum = on_device<double>(most), *bound = on_device<double>(most);
  const int heads = s.batch * s.heads, kv_heads = heads / s.shared_by;
  plain_scores<T><<<dim3(s.seq_q, heads), 128>>>(s, p.q, p.k, p.v, p.y, p.dy, p.lse, weights, ds, sizes);
  plain_sums<T><<<dim3(s.seq_q, heads), 128>>>(s, false, ds, sizes, p.k, s.scale, sum, bound);
  compare("dq", s, false, p.dq, sum, bound);
  plain_sums<T><<<dim3(s.seq_k, kv_heads), 128>>>(s, true, ds, sizes, p.q, s.scale, sum, bound);
  compare("dk", s, true, p.dk, sum, bound);
  plain_sums<T><<<dim3(s.seq_k, kv_heads), 128>>>(s, true, weights, nullptr, p.dy, 1, sum, bound);
  compare("dv", s, true, p.dv, sum, bound);
  for (auto* x : {weights, ds, sizes, sum, bound}) cudaFree(x);
}

template <class B, class T = typename B::Element>
void measure_gradients(const char* name, const GradientProblem<T>& p) {
  const auto part = [&](Part which) { return median_ms([&] { launch_gradients<B>(p, which); }, 9); };
  const double ms = median_ms([&] { launch_gradients<B>(p); });
  std::printf("  %-22s %8.4f ms  %6.1f TFLOP/s; before %.4f, products %.4f, after %.4f\n", name, ms,
              2.5 * products(p.s) / ms * 1e-9, part(Part::before), part(Part::products), part(Part::after));
}

template <class B>
void check_gradient_sizes(const char* name) {
  const int d = B::kD;
  check_gradients<B>(name, sizes_of(1, 1, 1, 128, 128, d, false, false));
  check_gradients<B>(name, sizes_of(2, 3, 3, 384, 384, d, true, false));
  check_gradients<B>(name, sizes_of(1, 4, 2, 301, 517, d, true, true));
  check_gradients<B>(name, sizes_of(2, 6, 2, 517, 301, d, true, true));
  check_gradients<B>(name, sizes_of(3, 2, 1, 65, 1000, d - 8, false, true));
  check_gradients<B>(name, sizes_of(2, 20, 20, 777, 777, d, true, true), 3);
}

void check_all_gradients() {
  check_gradient_sizes<Backward<bf16, 128, 64, 1>>("128 one part");
  check_gradient_sizes<Backward<bf16, 64, 64, 1>>("64 one part");
  check_gradient_sizes<Backward<bf16, 128, 64, 2>>("128 two parts");
  check_gradient_sizes<Backward<bf16, 64, 64, 2>>("64 two parts");
}

void measure_all_gradients() {
  for (const bool causal : {true, false})
    for (const int seq : {1024, 4096, 16384}) {
      const GradientProblem<bf16> p(sizes_of(16384 / seq, 16, 16, seq, seq, 128, causal, false));
      launch<Wide<bf16, 1>>(p);
      std::printf("gradients, bf16, 128 wide, %d x 16 heads x %d, %s\n", 16384 / seq, seq,
                  causal ? "causal" : "full");
      for (int again = 0; again < 2; ++again) {
        measure_gradients<Backward<bf16, 128, 64, 1>>("one part", p);
        measure_gradients<Backward<bf16, 128, 64, 2>>("two parts", p);
      }
    }
  for (const bool seq_first : {true, false})
    for (const int seq : {1024, 4096}) {
      const GradientProblem<bf16> p(sizes_of(32 * 1024 / seq, 12, 12, seq, seq, 64, true, seq_first));
      launch<Narrow<bf16, 1>>(p);
      std::printf("gradients, bf16, 64 wide, %d x 12 heads x %d, causal%s\n", 32 * 1024 / seq, seq,
                  seq_first ? ", seq first" : "");
      for (int again = 0; again < 2; ++again) {
        measure_gradients<Backward<bf16, 64, 64, 1>>("one part", p);
        measure_gradients<Backward<bf16, 64, 64, 2>>("two parts", p);
      }
    }
}

}  // namespace weft::cuda::hopper
