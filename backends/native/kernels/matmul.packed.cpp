#include <algorithm>

#include "backends/native/gemm.h"
#include "backends/native/scratch.h"
#include "backends/native/steps.h"
#include "weft/shared/ops/matmul.hpp"

// matmul: small products at once, others in blocks of a and b that are packed once and shared by all threads.
// Halves are widened to f32 first.
namespace weft::native {

using namespace weft::backend;

namespace {

bool transposed(const OpCall& c, const char* attr) { return c.attr(attr).integer() != 0; }

Support accepts(const OpCall& c) {
  if (auto s = shared::detail::accepts_matmul(c); !s) return s;
  const bool wide = c.input(0).dtype() == DType::f32 || c.input(0).dtype() == DType::f64;
  if (!wide && c.accumulate() != 0)
    return Support::no("adds to f32 and f64 only, got {}", c.input(0).dtype());
  return Support::yes();
}

/// The sizes of a call, and where the matrices of each batch begin.
template <class T>
struct Batches {
  Product<T> first;
  shared::Walk<2> walk;
  int64_t a_size, b_size, c_size;

  Batches(const Launch& l, const T* a, const T* b, T* c)
      : walk(leading(l.output(0)), {leading(l.input(0)), leading(l.input(1))}) {
    const bool ta = transposed(l.call(), "transpose_a"), tb = transposed(l.call(), "transpose_b");
    const auto size = [](TensorView t, int64_t back) { return t.dim(t.rank() - back); };
    const TensorView x = l.input(0), y = l.output(0);
    first = {.m = size(y, 2), .n = size(y, 1), .k = size(x, ta ? 2 : 1), .a = a, .b = b, .c = c};
    first.a_row = ta ? 1 : first.k, first.a_column = ta ? first.m : 1;
    first.b_row = tb ? 1 : first.n, first.b_column = tb ? first.k : 1;
    first.c_row = first.n;
    first.accumulate = l.call().accumulates(0);
    a_size = first.m * first.k, b_size = first.k * first.n, c_size = first.m * first.n;
  }
  static std::span<const int64_t> leading(TensorView t) {
    return t.dims().first(static_cast<size_t>(t.rank() - 2));
  }
  int64_t count() const { return walk.total(); }
  Product<T> at(int64_t batch) const {
    Product<T> p = first;
    walk.run(batch, batch + 1,
             [&](int64_t, const auto& at, int64_t) { p.a += at[0] * a_size, p.b += at[1] * b_size; });
    p.c += batch * c_size;
    return p;
  }
};

// One block of rows: what a thread packs of b is used by nobody else, so each makes its columns alone.
template <class T>
void spread_columns(const Host& host, const Product<T>& p, int64_t panel) {
  host.parallel_for((p.n + panel - 1) / panel, 2, [&](int64_t begin, int64_t end) {
    multiply(p.part(0, p.m, begin * panel, std::min(p.n, end * panel) - begin * panel));
  });
}

// One large product on all threads: a block of b is packed by all of them, then each takes pieces of c.
template <class T>
void spread(const Host& host, const Product<T>& p) {
  const Blocks b = blocks_of(p);
  const int64_t row_blocks = (p.m + b.rows - 1) / b.rows;
  if (row_blocks == 1) return spread_columns(host, p, b.panel);
  T* packed = scratch<T>(Scratch::packed_b, b.b_size);
  for (int64_t j = 0; j < p.n; j += b.columns) {
    const int64_t columns = std::min(b.columns, p.n - j), panels = (columns + b.panel - 1) / b.panel;
    const Product<T> part = p.part(0, p.m, j, columns);
    // Few blocks of rows: their columns are cut as well, so that every thread has some.
    const int64_t cuts = std::clamp<int64_t>(16 / row_blocks, 1, panels);
    for (int64_t k = 0; k < p.k; k += b.depth) {
      const int64_t depth = std::min(b.depth, p.k - k);
      host.parallel_for(panels, 4, [&](int64_t begin, int64_t end) {
        gemm_table<T>().pack_b(part, k, depth, begin, end, packed);
      });
      host.parallel_for(row_blocks * cuts, 1, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) {
          const int64_t i = t / cuts * b.rows, cut = t % cuts;
          gemm_table<T>().block(part, k, depth, i, std::min(p.m, i + b.rows), panels * cut / cuts,
                                panels * (cut + 1) / cuts, packed);
        }
      });
    }
  }
}

// A product that is not packed, in pieces of c that are worth a thread.
template <class T>
void spread_direct(const Host& host, const Product<T>& p, int64_t step) {
  const int64_t macs = p.m * p.k * step,
                grain = std::max<int64_t>(1, (int64_t{1} << 18) / std::max<int64_t>(1, macs));
  host.parallel_for((p.n + step - 1) / step, grain, [&](int64_t begin, int64_t end) {
    gemm_table<T>().direct(p.part(0, p.m, begin * step, std::min(p.n, end * step) - begin * step));
  });
}

template <class T>
void products(const Launch& l, const T* a, const T* b, T* c) {
  const Batches<T> batches(l, a, b, c);
  const Product<T> p = batches.first;
  const int64_t macs = p.m * p.n * p.k;
  if (p.m == 0 || p.n == 0 || batches.count() == 0) return;
  constexpr int64_t kWorthAThread = int64_t{1} << 19;  // about 10 us: ten times what it takes to share it
  if (p.k == 0 || macs < kWorthAThread || batches.count() >= 8) {
    const int64_t grain = std::max<int64_t>(1, kWorthAThread / std::max<int64_t>(1, macs));
    return l.host().parallel_for(batches.count(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) multiply(batches.at(i));
    });
  }
  for (int64_t i = 0; i < batches.count(); ++i) {
    const Product<T> one = batches.at(i);
    if (gemm_table<T>().small(one)) {
      spread_direct(l.host(), one, one.m <= 4 ? std::clamp<int64_t>(one.n / 4 / 64 * 64, 64, 1024) : 64);
    } else {
      spread(l.host(), one);
    }
  }
}

// Halves: whole operands are widened, and the f32 result is rounded once.
void widened(const Launch& l, Stored type) {
  const TensorView a = l.input(0), b = l.input(1), y = l.output(0);
  auto* x = scratch<float>(Scratch::rows, a.size());
  auto* w = scratch<float>(Scratch::columns, b.size());
  auto* c = scratch<float>(Scratch::scores, y.size());
  widen(type, a.data(), x, a.size());
  widen(type, b.data(), w, b.size());
  products<float>(l, x, w, c);
  narrow(type, c, y.data(), y.size());
}

Outcome launch(const Launch& l) {
  switch (l.input(0).dtype()) {
    case DType::f32:
      products(l, l.input(0).data<float>(), l.input(1).data<float>(), l.output(0).data<float>());
      break;
    case DType::f64:
      products(l, l.input(0).data<double>(), l.input(1).data<double>(), l.output(0).data<double>());
      break;
    default: widened(l, l.input(0).dtype() == DType::f16 ? Stored::f16 : Stored::bf16);
  }
  return Outcome::ok();
}

}  // namespace

extern const KernelRecord matmul_packed = {
    .op = "matmul",
    .variant = "packed",
    .reads = {"transpose_a", "transpose_b"},
    .accepts = accepts,
    .launch = launch,
    .determinism = WEFT_DETERMINISM_RUN,  // how k is cut depends on the other sizes
    .accumulates = true,
};

}  // namespace weft::native
