#include <fmt/format.h>

#include "cases.h"
#include "eager/tensor_impl.h"
#include "seam/registry.h"
#include "weft/backends.h"
#include "weft/ops.h"

// Rendered kernels against the same algorithm written by hand in OpenCL C for one dtype and rank: groups of
// 256 items, 32 of them for a row; products in tiles of 64 x 64.
namespace weft::speed {
namespace {

constexpr const char* kText = R"(#pragma OPENCL FP_CONTRACT OFF
float across(__local float* s, int lane, int local_id, float v, int is_max) {
  for (int d = 16; d > 0; d /= 2) {
    s[local_id] = v;
    barrier(CLK_LOCAL_MEM_FENCE);
    const float o = s[local_id ^ d];
    v = is_max ? fmax(v, o) : v + o;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  return v;
}
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void softmax(__global const float* x, __global float* y, long ox, long oy, int groups, int rows, int n) {
  __local float s[256];
  const int id = get_local_id(0), lane = id % 32, row = get_group_id(0) * 8 + id / 32;
  x += ox + (long)min(row, rows - 1) * n; y += oy + (long)min(row, rows - 1) * n;
  float m = -INFINITY, t = 0;
  for (int c = lane; c < n; c += 32) m = fmax(m, x[c]);
  m = across(s, lane, id, m, 1);
  for (int c = lane; c < n; c += 32) t += exp(x[c] - m);
  t = across(s, lane, id, t, 0);
  for (int c = lane; c < n; c += 32) if (row < rows) y[c] = exp(x[c] - m) / t;
}
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void rms_norm(__global const float* x, __global const float* w, __global float* y, long ox, long ow, long oy,
              int groups, int rows, int n) {
  __local float s[256];
  const int id = get_local_id(0), lane = id % 32, row = get_group_id(0) * 8 + id / 32;
  x += ox + (long)min(row, rows - 1) * n; y += oy + (long)min(row, rows - 1) * n; w += ow;
  float t = 0;
  for (int c = lane; c < n; c += 32) t += x[c] * x[c];
  const float r = 1 / sqrt(across(s, lane, id, t, 0) / n + 1e-5f);
  for (int c = lane; c < n; c += 32) if (row < rows) y[c] = x[c] * r * w[c];
}
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void matmul(__global const float* a, __global const float* b, __global float* y, long oa, long ob, long oy,
            int groups, int m, int n, int k) {
  __local float p[16 * 65], q[16 * 65];
  const int id = get_local_id(0), tx = id % 16, ty = id / 16, across = (n + 63) / 64;
  const int j0 = get_group_id(0) % across * 64, i0 = get_group_id(0) / across * 64;
  a += oa; b += ob; y += oy;
  float t[4][4] = {{0}};
  for (int k0 = 0; k0 < k; k0 += 16) {
    for (int e = 0; e < 4; ++e) {
      const int r = ty + e * 16, c = id % 64, d = id / 64 + e * 4;
      p[tx * 65 + r] = k0 + tx < k ? a[min(i0 + r, m - 1) * k + min(k0 + tx, k - 1)] : 0;
      q[d * 65 + c] = k0 + d < k ? b[min(k0 + d, k - 1) * n + min(j0 + c, n - 1)] : 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int d = 0; d < 16; ++d)
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j)
          t[i][j] = fma(p[d * 65 + ty + i * 16], q[d * 65 + tx + j * 16], t[i][j]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j)
      if (i0 + ty + i * 16 < m && j0 + tx + j * 16 < n)
        y[(i0 + ty + i * 16) * n + j0 + tx + j * 16] = t[i][j];
}
)";

seam::Device& device() { return *value_or_raise(seam::registry().open("opencl")); }
void finish() { raise_if(device().eager_queue().synchronize()); }

std::vector<Tensor> tensors_of(const std::vector<Operand>& operands) {
  std::vector<Tensor> x;
  for (const auto& o : operands)
    x.push_back(Tensor::from_bytes(std::as_bytes(std::span(o.values)), o.shape, DType::f32));
  return x;
}

/// A kernel of the text above, with its own operands.
class Written {
 public:
  Written(const char* entry, const std::vector<Operand>& operands, std::vector<int64_t> result,
          std::vector<int32_t> scalars)
      : scalars_(std::move(scalars)) {
    const OnBackend on("opencl");
    tensors_ = tensors_of(operands);
    tensors_.push_back(full(0, to_shape(result)));
    const weft_source source{sizeof source, 0, kText, entry};
    weft_error e{};
    e.size = sizeof e;
    if (device().backend().compile(device().c(), &source, &module_, &e) != WEFT_OK)
      raise_if(Status(Code::device, e.text));
  }
  void run() {
    std::vector<const weft_tensor*> pointers;
    for (const Tensor& t : tensors_) pointers.push_back(&t.impl()->c);
    weft_dispatch d{};
    d.size = sizeof d, d.module = module_, d.buffers = pointers.data();
    d.n_buffers = static_cast<uint32_t>(pointers.size());
    d.scalars = scalars_.data(), d.n_scalars = static_cast<uint32_t>(scalars_.size());
    d.global[0] = static_cast<uint64_t>(scalars_[0]) * 256, d.global[1] = d.global[2] = 1;
    d.local[0] = 256, d.name = "written";
    weft_error e{};
    e.size = sizeof e;
    if (device().backend().dispatch(device().eager_queue().c(), &d, &e) != WEFT_OK)
      raise_if(Status(Code::device, e.text));
    finish();
  }
  std::vector<float> result() { return tensors_.back().to_vector<float>(); }

 private:
  std::vector<int32_t> scalars_;
  std::vector<Tensor> tensors_;
  weft_module module_ = nullptr;
};

/// Ours on the device against a kernel of the text; both wait for their result.
Case beside(std::string name, const char* entry, std::function<Operands()> make, Op op,
            std::vector<int64_t> y, std::vector<int32_t> scalars, double flops = 0) {
  const auto ours = [make, op] {
    const OnBackend on("opencl");
    const auto result = std::make_shared<Tensor>();
    return Task{[x = tensors_of(make()), result, op] {
                  *result = op(x);
                  finish();
                },
                [result] { return result->to_vector<float>(); }};
  };
  const auto peers = [=] {
    const auto kernel = std::make_shared<Written>(entry, make(), y, scalars);
    return std::vector<PeerTask>{
        {"by hand", {[kernel] { kernel->run(); }, [kernel] { return kernel->result(); }}, {}}};
  };
  return {"", std::move(name), ours, peers, flops};
}

Case rows_beside(const char* op_name, int64_t rows, int64_t n, Op op, bool weighted) {
  const auto make = [=] {
    Operands all{random_operand({rows, n}, 1)};
    if (weighted) all.push_back(random_operand({n}, 2));
    return all;
  };
  return beside(fmt::format("{} {} x {}", op_name, rows, n), op_name, make, std::move(op), {rows, n},
                {static_cast<int32_t>((rows + 7) / 8), static_cast<int32_t>(rows), static_cast<int32_t>(n)});
}
Case product_beside(int64_t m, int64_t n, int64_t k) {
  const auto tiles = (m + 63) / 64 * ((n + 63) / 64);
  return beside(
      fmt::format("matmul {} x {} x {}", m, n, k), "matmul",
      [=] { return Operands{random_operand({m, k}, 1), random_operand({k, n}, 2)}; },
      [](const std::vector<Tensor>& x) { return matmul(x[0], x[1]); }, {m, n},
      {static_cast<int32_t>(tiles), static_cast<int32_t>(m), static_cast<int32_t>(n),
       static_cast<int32_t>(k)},
      2.0 * static_cast<double>(m * n * k));
}

/// A copy of this many bytes on the device.
PeerTask copy_of_bytes(uint64_t bytes) {
  const auto from = std::make_shared<seam::BufferRef>(value_or_raise(device().allocate(bytes)));
  const auto to = std::make_shared<seam::BufferRef>(value_or_raise(device().allocate(bytes)));
  return {"copy",
          {[=] {
            raise_if(device().eager_queue().copy(*to->get(), 0, *from->get(), 0, bytes));
            finish();
          }},
          {}};
}
Case row_op_beside_copy(const char* name, int64_t rows, int64_t n, Op op) {
  const auto ours = [=] {
    const OnBackend on("opencl");
    const auto result = std::make_shared<Tensor>();
    const Operands operands{random_operand({rows, n}, 1), random_operand({n}, 2)};
    return Task{[x = tensors_of(operands), result, op] {
      *result = op(x);
      finish();
    }};
  };
  const auto peers = [=] { return std::vector{copy_of_bytes(static_cast<uint64_t>(rows * n) * 4)}; };
  return {"", fmt::format("{} {} x {}", name, rows, n), ours, peers, 0};
}

}  // namespace

// A goal for devices that are bound by memory; small ones are bound by computation.
Group rows_beside_copies(int threads) {
  Group g{.name = "opencl rows beside copies", .threads = threads, .reach = 0, .cases = {}, .amounts = {}};
  if (!is_backend_available("opencl")) return g;
  const bool large = device().capability().units > 16;
  if (large) g.reach = 0.7;
  const int64_t rows = large ? 32768 : 512;
  for (const int64_t n : {384, 1024, 4096}) {
    g.cases.push_back(row_op_beside_copy("softmax", rows, n, [](auto& x) { return softmax(x[0], -1); }));
    g.cases.push_back(row_op_beside_copy("rms_norm", rows, n, [](auto& x) { return rms_norm(x[0], x[1]); }));
    g.cases.push_back(
        row_op_beside_copy("layer_norm", rows, n, [](auto& x) { return layer_norm(x[0], x[1], x[1]); }));
  }
  return g;
}

Group written_by_hand(int threads) {
  Group g{.name = "opencl beside hand-written OpenCL C",
          .threads = threads,
          .reach = 0.9,
          .cases = {},
          .amounts = {}};
  if (!is_backend_available("opencl")) return g;
  const auto softmax_of = [](const std::vector<Tensor>& x) { return softmax(x[0], -1); };
  const auto rms_norm_of = [](const std::vector<Tensor>& x) { return rms_norm(x[0], x[1]); };
  g.cases = {rows_beside("softmax", 2048, 384, softmax_of, false),
             rows_beside("softmax", 1000, 1001, softmax_of, false),
             rows_beside("rms_norm", 4096, 384, rms_norm_of, true),
             rows_beside("rms_norm", 1000, 2000, rms_norm_of, true),
             product_beside(384, 384, 384),
             product_beside(500, 300, 700)};
  return g;
}

}  // namespace weft::speed
