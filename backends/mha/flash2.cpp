#include "flash2.h"

#include <numbers>

#include "check.h"
#include "groups.h"
#include "kernel.h"
#include "lse.h"

namespace weft::mha {

namespace {

/// Calls f with the type of the elements, the width of the tiles and whether the call is causal.
template <class F>
void with_kernel(const Sizes& s, F f) {
  const auto with_mask = [&]<class T, int kDim>() {
    s.causal ? f.template operator()<T, kDim, true>() : f.template operator()<T, kDim, false>();
  };
  const auto with_width = [&]<class T>() {
    s.tile() == 64 ? with_mask.template operator()<T, 64>() : with_mask.template operator()<T, 128>();
  };
  s.dtype == DType::bf16 ? with_width.template operator()<cutlass::bfloat16_t>()
                         : with_width.template operator()<cutlass::half_t>();
}

/// Elements from one member of the batch, one head and one row to the next.
struct Strides {
  int64_t batch, head, row;
  Strides(const Sizes& s, int64_t heads, int64_t rows)
      : batch(heads * rows * s.dim),
        head(s.seq_first ? s.dim : rows * s.dim),
        row(s.seq_first ? heads * s.dim : s.dim) {}
  void put(int64_t& to_batch, int64_t& to_head, int64_t& to_row) const {
    to_batch = batch, to_head = head, to_row = row;
  }
};

// A causal query sees no key to the right of its own; the last query's own key is the last one.
void describe(const Sizes& s, flash::Flash_fwd_params& p) {
  const Strides q(s, s.heads, s.seq_q), k(s, s.kv_heads, s.seq_k);
  q.put(p.q_batch_stride, p.q_head_stride, p.q_row_stride);
  k.put(p.k_batch_stride, p.k_head_stride, p.k_row_stride);
  k.put(p.v_batch_stride, p.v_head_stride, p.v_row_stride);
  q.put(p.o_batch_stride, p.o_head_stride, p.o_row_stride);
  p.b = static_cast<int>(s.batch), p.h = static_cast<int>(s.heads), p.h_k = static_cast<int>(s.kv_heads);
  p.h_h_k_ratio = static_cast<int>(s.group());
  p.seqlen_q = static_cast<int>(s.seq_q), p.seqlen_k = static_cast<int>(s.seq_k);
  p.seqlen_q_rounded = static_cast<int>(s.padded_rows());
  p.seqlen_k_rounded = (p.seqlen_k + 127) / 128 * 128;
  p.d = static_cast<int>(s.dim), p.d_rounded = static_cast<int>(s.tile());
  p.scale_softmax = p.scale_softmax_rp_dropout = s.scale;
  p.scale_softmax_log2 = s.scale * std::numbers::log2e_v<float>;
  p.p_dropout = p.rp_dropout = 1;  // what is kept
  p.window_size_left = s.causal ? p.seqlen_k : -1, p.window_size_right = s.causal ? 0 : -1;
  p.is_bf16 = s.dtype == DType::bf16, p.is_causal = s.causal, p.is_seqlens_k_cumulative = true;
}

/// What a block of the gradients has.
constexpr int kShared = 144 << 10;

int of_device(cudaDeviceAttr what) {
  int device = 0, n = 0;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&n, what, device));
  return n;
}

uint64_t bytes_of_dq(const Sizes& s, int64_t pieces) {
  return static_cast<uint64_t>(pieces * s.batch * s.padded_rows() * s.heads * s.tile()) * sizeof(float);
}

}  // namespace

backend::Support takes_device() {
  using backend::Support;
  if (!is_compiled()) return Support::no("the kernels were not compiled for the architecture of this device");
  if (const int got = of_device(cudaDevAttrMaxSharedMemoryPerBlockOptin); got < kShared)
    return Support::no("wants {} bytes of shared memory a block, got {}", kShared, got);
  return Support::yes();
}

void attention(const Sizes& s, const Operands& o, cudaStream_t stream) {
  flash::Flash_fwd_params p{};
  describe(s, p);
  p.q_ptr = o.input(0), p.k_ptr = o.input(1), p.v_ptr = o.input(2);
  p.o_ptr = o.output(0), p.softmax_lse_ptr = o.output(1);
  with_kernel(s, [&]<class T, int kDim, bool kCausal>() { forward<T, kDim, kCausal>(p, stream); });
  const Strides y(s, s.heads, s.seq_q);
  const auto infinity = static_cast<uint16_t>(s.dtype == DType::bf16 ? 0x7f80 : 0x7c00);
  mend_lse({s.batch * s.heads * s.seq_q, s.heads, s.seq_q, y.batch, y.head, y.row, infinity}, p.o_ptr,
           static_cast<float*>(p.softmax_lse_ptr), stream);
}

// As many pieces as flash-attn has blocks that share a head's dq.
Rooms rooms_of(const Sizes& s, bool repeatable) {
  Rooms r;
  const int64_t heads = s.batch * s.heads;
  if (repeatable) r.pieces = (of_device(cudaDevAttrMultiProcessorCount) + heads - 1) / heads;
  const auto take = [&](uint64_t& at, uint64_t bytes) { at = r.end, r.end += (bytes + 255) / 256 * 256; };
  take(r.row_sums, static_cast<uint64_t>(heads * s.padded_rows()) * sizeof(float));
  take(r.dq, bytes_of_dq(s, r.pieces));
  if (s.group() == 1) return r;
  const auto of_all_heads = static_cast<uint64_t>(heads * s.seq_k * s.dim) * byte_size(s.dtype);
  take(r.dk, of_all_heads), take(r.dv, of_all_heads);
  return r;
}

void attention_grad(const Sizes& s, const Operands& o, const Rooms& r, bool repeatable, char* workspace,
                    cudaStream_t stream) {
  flash::Flash_bwd_params p{};
  describe(s, p);
  const bool shared = s.group() > 1;
  const Strides q(s, s.heads, s.seq_q), k(s, s.heads, s.seq_k);  // dk and dv have a head for each of q
  q.put(p.do_batch_stride, p.do_head_stride, p.do_row_stride);
  q.put(p.dq_batch_stride, p.dq_head_stride, p.dq_row_stride);
  k.put(p.dk_batch_stride, p.dk_head_stride, p.dk_row_stride);
  k.put(p.dv_batch_stride, p.dv_head_stride, p.dv_row_stride);
  p.q_ptr = o.input(0), p.k_ptr = o.input(1), p.v_ptr = o.input(2);
  p.o_ptr = o.input(3), p.softmax_lse_ptr = o.input(4), p.do_ptr = o.input(5);
  p.dq_ptr = o.output(0);
  p.dk_ptr = shared ? workspace + r.dk : o.output(1), p.dv_ptr = shared ? workspace + r.dv : o.output(2);
  p.dsoftmax_sum = workspace + r.row_sums, p.dq_accum_ptr = workspace + r.dq;
  p.deterministic = repeatable;
  if (repeatable) {
    p.dq_accum_split_stride = static_cast<int64_t>(bytes_of_dq(s, 1) / sizeof(float));
    check(cudaMemsetAsync(p.dq_accum_ptr, 0, bytes_of_dq(s, r.pieces), stream));
  }
  // bf16 alone: f16 has too few exponents for the gradients of scores.
  with_kernel(s, [&]<class T, int kDim, bool kCausal>() {
    if constexpr (std::is_same_v<T, cutlass::bfloat16_t>) backward<T, kDim, kCausal>(p, stream);
  });
  if (!shared) return;
  const Groups groups{s.batch * s.kv_heads * s.seq_k, s.seq_first ? 1 : s.seq_k, s.group(), s.dim};
  sum_groups(groups, p.dk_ptr, o.output(1), stream);
  sum_groups(groups, p.dv_ptr, o.output(2), stream);
}

}  // namespace weft::mha
