#include <cstdio>

#include "measure.hpp"
#include "weft/backend.h"
#include "weft/ledger.h"
#include "weft/policy_scope.h"

// Attention and its gradients of many kinds of calls, where products of bf16 are allowed: the errors of y,
// dq, dk and dv beside f32, as shares of the largest number, and whether two runs give the same bits where
// asked.
namespace weft::bench {

namespace {

struct Heads {
  int64_t batch, heads, kv_heads, queries, keys, width;
  bool causal, seq_first;
  double scale;
};

constexpr Heads kHeads[] = {
    {2, 4, 4, 256, 256, 64, false, false, 0},    {2, 4, 4, 256, 256, 128, true, false, 0},
    {2, 8, 2, 200, 333, 64, true, false, 0},     {2, 8, 2, 200, 333, 128, false, false, 0.3},
    {1, 4, 1, 384, 384, 128, true, true, 0},     {3, 6, 2, 65, 129, 64, true, true, 0.2},
    {1, 4, 2, 500, 130, 64, false, true, 0},     {2, 4, 2, 127, 260, 40, true, false, 0},
    {2, 4, 4, 300, 300, 80, false, false, 0},    {1, 4, 2, 150, 515, 96, true, true, 0},
    {1, 2, 1, 1, 1000, 128, true, false, 0},     {1, 1, 1, 2048, 2048, 64, true, false, 0},
    {40, 16, 16, 128, 128, 128, true, false, 0}, {2, 2, 2, 64, 64, 8, true, false, 0}};

std::string name_of(const Heads& h, DType dtype, uint8_t determinism) {
  char text[160];
  std::snprintf(text, sizeof text, "%lld x %lld/%lld heads, %lld x %lld, %lld wide%s%s, %s%s",
                static_cast<long long>(h.batch), static_cast<long long>(h.heads),
                static_cast<long long>(h.kv_heads), static_cast<long long>(h.queries),
                static_cast<long long>(h.keys), static_cast<long long>(h.width), h.causal ? ", causal" : "",
                h.seq_first ? ", seq first" : "", name(dtype), determinism ? ", the same bits" : "");
  return text;
}

/// y of q, k and v, then the gradients of these, of which dy is the fourth input.
std::vector<Tensor> all_of(const Heads& h, const std::vector<Tensor>& in) {
  std::vector<Tensor> leaves, results;
  for (size_t i = 0; i < 3; ++i) leaves.push_back(in[i].detach().requires_grad(true));
  const Tensor y =
      attention(leaves[0], leaves[1], leaves[2], Tensor(), Tensor(), h.causal, h.scale, h.seq_first);
  y.backward(in[3]);
  results.push_back(y.detach());
  for (const Tensor& leaf : leaves) results.push_back(leaf.grad());
  return results;
}

bool same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (!(max(abs(cast(a[i], DType::f32) - cast(b[i], DType::f32))).item() == 0)) return false;
  return true;
}

bool check(const Heads& h, DType dtype, uint8_t determinism) {
  const auto tensor = [&](uint64_t seed, int64_t heads, int64_t rows) {
    return h.seq_first ? random(seed, {h.batch, rows, heads, h.width}, dtype)
                       : random(seed, {h.batch, heads, rows, h.width}, dtype);
  };
  const std::vector<Tensor> inputs = {tensor(1, h.heads, h.queries), tensor(2, h.kv_heads, h.keys),
                                      tensor(3, h.kv_heads, h.keys), tensor(4, h.heads, h.queries)};
  std::vector<Tensor> wide;
  for (const Tensor& t : inputs) wide.push_back(cast(t, DType::f32));
  const std::vector<Tensor> exact = all_of(h, wide);
  Policy policy = current_policy();
  policy.precision = WEFT_PRECISION_BF16, policy.determinism = determinism;
  std::vector<Tensor> got, again;
  std::string kernels;
  {
    const PolicyScope scope(policy);
    reset_ledger();
    got = all_of(h, inputs);
    for (const LedgerRow& row : ledger_rows())
      if (row.op.starts_with("attention")) kernels += (kernels.empty() ? "" : ", ") + row.kernel;
    again = all_of(h, inputs);
  }
  bool good = determinism == 0 || same(got, again);
  const std::string which = name_of(h, dtype, determinism);
  std::printf(R"({"check": "%s", "kernels": "%s", "errors": [)", which.c_str(), kernels.c_str());
  for (size_t i = 0; i < got.size(); ++i) {
    const double error = error_of({got[i]}, {exact[i]});
    good &= error <= 0x1p-7;
    std::printf("%s%.1e", i ? ", " : "", error);
  }
  std::printf("]%s}\n", good ? "" : R"(, "wrong": true)");
  std::fflush(stdout);
  if (determinism && !same(got, again)) std::fprintf(stderr, "%s: two runs differ\n", which.c_str());
  return good;
}

}  // namespace

bool check_heads() {
  bool good = true;
  for (const Heads& h : kHeads)
    for (const DType dtype : {DType::bf16, DType::f16})
      for (const uint8_t determinism : {WEFT_DETERMINISM_ANY, WEFT_DETERMINISM_RUN})
        good &= check(h, dtype, determinism);
  return good;
}

}  // namespace weft::bench
