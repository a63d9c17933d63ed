#include <cstring>

#include "backends/native/attention.h"
#include "backends/native/ragged.h"
#include "backends/native/scratch.h"
#include "weft/shared/walk.hpp"

// Each sequence by itself, in place: few tokens one by one, more in blocks.
namespace weft::native {

using namespace weft::backend;

namespace {

/// A block of the queries of one sequence, of any head.
struct Piece {
  Run run;
  int64_t first;  // query of the run
};

Support accepts(const OpCall& c) {
  if (auto s = shared::arity(c, 5, 1); !s) return s;
  const TypeView q = c.input(0), k = c.input(1), v = c.input(2), y = c.output(0);
  const DType d = q.dtype();
  if (d != DType::f32 && d != DType::f16 && d != DType::bf16) return Support::no("does not compute in {}", d);
  if (k.dtype() != d || v.dtype() != d || y.dtype() != d) return Support::no("operands must be {}", d);
  if (q.rank() != 3 || k.rank() != 4 || v.rank() != 4 || y.rank() != 3)
    return Support::no("wants tokens and caches of heads");
  const auto sq = q.max(), sk = k.max(), sv = v.max(), sy = y.max();
  if (sq[2] != sk[3] || !std::ranges::equal(sk.first(3), sv.first(3)) ||
      !std::ranges::equal(sy.first(2), sq.first(2)) || sy[2] != sv[3])
    return Support::no("queries {} do not fit keys {} and values {}", sq, sk, sv);
  if (sq[2] == 0) return Support::no("queries must have elements");
  if (sk[1] == 0 || sq[1] % sk[1] != 0) return Support::no("heads must be a multiple of those of keys");
  return accepts_ragged(c.input(3), c.input(4), sk[0]);
}

AttentionHead head_of(const Launch& l, const Run& run, int64_t h) {
  const TensorView q = l.input(0), k = l.input(1), v = l.input(2), y = l.output(0);
  const int64_t heads = q.dim(1), kv_heads = k.dim(1), capacity = k.dim(2), dim = q.dim(2), width = v.dim(3);
  const int64_t kv = run.sequence * kv_heads + h / (heads / kv_heads);
  const double scale = l.call().attr("scale").real(0);
  return {.q = {q, (run.begin * heads + h) * dim, heads * dim},
          .k = {k, kv * capacity * dim, dim},
          .v = {v, kv * capacity * width, width},
          .y = {y, (run.begin * heads + h) * width, heads * width},
          .lse = nullptr,
          .queries = run.end - run.begin,
          .capacity = capacity,
          .dim = dim,
          .width = width,
          .keys = run.position + run.end - run.begin,
          .scale = static_cast<float>(scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(dim))),
          .causal = true};
}

void attend(const Launch& l, const Piece& p, int64_t h) {
  const AttentionHead head = head_of(l, p.run, h);
  if (head.queries > kFewQueries) return attend_block(head, p.first);
  for (int64_t i = 0; i < head.queries; ++i) attend_one(head, i);
}

Outcome launch(const Launch& l) {
  const TensorView q = l.input(0), k = l.input(1), y = l.output(0);
  const int64_t tokens = q.dim(0), heads = q.dim(1),
                row = heads * y.dim(2) * static_cast<int64_t>(byte_size(y.dtype()));
  if (tokens * row == 0) return Outcome::ok();
  const Ragged it(l.input(3), l.input(4), tokens, k.dim(2));
  auto* pieces = scratch<Piece>(Scratch::pieces, tokens);  // at most one for each token
  int64_t n = 0, keys = 0;                                 // that all queries of a head see
  for (int64_t t = 0; t < tokens;) {
    const Run run = it.run_at(t);
    const int64_t queries = run.end - t;
    if (run.sequence < 0) std::memset(y.data() + t * row, 0, static_cast<size_t>(queries * row));
    // The last blocks see the most keys, so they start first.
    for (int64_t b = (queries - 1) / kQueries; run.sequence >= 0 && b >= 0; --b)
      pieces[n++] = {run, b * kQueries};
    if (run.sequence >= 0) keys += queries * std::max<int64_t>(1, run.position + queries);
    t = run.end;
  }
  if (n == 0) return Outcome::ok();
  const int64_t elements = keys * (q.dim(2) + y.dim(2)) / n;  // of a piece
  l.host().parallel_for(n * heads, std::max<int64_t>(1, (int64_t{1} << 14) / std::max<int64_t>(1, elements)),
                        [&](int64_t begin, int64_t end) {
                          for (int64_t i = begin; i < end; ++i) attend(l, pieces[i / heads], i % heads);
                        });
  return Outcome::ok();
}

}  // namespace

extern const KernelRecord ragged_attention_flash = {
    .op = "ragged_attention", .variant = "flash", .reads = {"scale"}, .accepts = accepts, .launch = launch};

}  // namespace weft::native
