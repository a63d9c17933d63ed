#include <algorithm>

#include "backends/native/half_product.h"
#include "backends/native/packing.h"
#include "backends/native/split_product.h"
#include "backends/native/spread.h"
#include "weft/shared/ops/matmul.hpp"

// matmul: small products directly, others in blocks of a and b that are packed once and shared by all
// threads. Halves have their own products. A constant matrix comes packed.
namespace weft::native {

using namespace weft::backend;

namespace {

bool transposed(const OpCall& c, const char* attr) { return c.attr(attr).integer() != 0; }

// A product computed in parts would be added part by part, with other bits than one addition gives.
Support adds_whole_products(const OpCall& c) {
  const TypeView x = c.input(0);
  const int64_t k = x.max()[static_cast<size_t>(x.rank() - (transposed(c, "transpose_a") ? 2 : 1))],
                depth = kDepthBytes / static_cast<int64_t>(byte_size(x.dtype()));
  if (k > depth) return Support::no("adds products of k <= {} only, got {}", depth, k);
  return Support::yes();
}

Support accepts(const OpCall& c) {
  if (auto s = shared::detail::accepts_matmul(c); !s) return s;
  if (c.accumulate() != 0) return adds_whole_products(c);
  return Support::yes();
}

/// b as passed to matmul.
template <class T>
Product<T> by_matrix(bool turned, int64_t k, int64_t n, const T* b) {
  return {.n = n, .k = k, .b = b, .b_row = turned ? 1 : n, .b_column = turned ? k : 1};
}

template <class T>
void want(weft_plan& plan, const Product<T>& p) {
  // Small products read row-major ones in place.
  if (p.n * p.k < (p.b_row == 1 ? 1 : 4) * kLeastPacked) return;
  want_packed(plan, 1, packed_id(p), static_cast<uint64_t>(packed_size(p)) * sizeof(T));
}
// The rows of all products, which are one product's where b is one matrix; 0 if a is transposed.
int64_t rows_of_all(const OpCall& c) {
  if (transposed(c, "transpose_a")) return 0;
  int64_t rows = 1;
  for (const int64_t d : c.input(0).max().first(static_cast<size_t>(c.input(0).rank() - 1))) rows *= d;
  return rows;
}
Outcome prepare(const OpCall& c, weft_plan& plan) {
  const TypeView b = c.input(1);
  if (!b.constant() || b.rank() != 2) return Outcome::ok();
  const bool turned = transposed(c, "transpose_b");
  const int64_t k = b.max()[turned ? 1 : 0], n = b.max()[turned ? 0 : 1];
  if (b.dtype() == DType::f32) {
    const auto p = by_matrix<float>(turned, k, n, nullptr);
    worth_splitting(c, p, rows_of_all(c)) ? want_split(plan, 1, p) : want(plan, p);
  }
  if (b.dtype() == DType::f64) want(plan, by_matrix<double>(turned, k, n, nullptr));
  return Outcome::ok();
}

template <class T>
void pack_matrix(bool turned, TensorView from, TensorView to, const Host& host) {
  const int64_t k = from.dim(turned ? 1 : 0), n = from.dim(turned ? 0 : 1);
  pack_whole_b(host, by_matrix(turned, k, n, static_cast<const T*>(from.data<T>())), to.data<T>());
}
Outcome pack(const weft_plan& plan, int64_t, TensorView from, TensorView to, const Host& host) {
  const bool turned = transposed(OpCall(plan.call), "transpose_b");
  if (to.layout() == kSplitLayout) {
    const auto p = by_matrix(turned, from.dim(turned ? 1 : 0), from.dim(turned ? 0 : 1),
                             static_cast<const float*>(from.data<float>()));
    return pack_split(host, p, reinterpret_cast<uint8_t*>(to.data<float>())), Outcome::ok();
  }
  from.dtype() == DType::f32 ? pack_matrix<float>(turned, from, to, host)
                             : pack_matrix<double>(turned, from, to, host);
  return Outcome::ok();
}

/// The sizes of a call, and the offsets of each batch's matrices.
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
    if (l.input(1).layout() == 1) first.packed_b = b;
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

template <class T>
void products(const Launch& l, const T* a, const T* b, T* c) {
  const Batches<T> batches(l, a, b, c);
  if constexpr (std::is_same_v<T, float>)
    if (l.input(1).layout() == kSplitLayout) {
      Product<float> p = batches.first;
      p.m *= batches.count();
      return multiply_split(l.host(), p);
    }
  multiply_all<T>(l.host(), batches.count(), batches.first, [&](int64_t i) { return batches.at(i); });
}

HalfProduct halves(Stored type, const Product<uint16_t>& p) {
  return {.type = type,
          .m = p.m,
          .n = p.n,
          .k = p.k,
          .a = p.a,
          .a_row = p.a_row,
          .a_column = p.a_column,
          .b = p.b,
          .b_row = p.b_row,
          .b_column = p.b_column,
          .c = p.c,
          .accumulate = p.accumulate};
}

// Many products get one thread each; few run in sequence on all threads.
void products_of_halves(const Launch& l, Stored type) {
  const Batches<uint16_t> batches(l, l.input(0).data<uint16_t>(), l.input(1).data<uint16_t>(),
                                  l.output(0).data<uint16_t>());
  constexpr int64_t kManyBatches = 8, kWorthAThread = 1 << 17;
  const int64_t macs = std::max<int64_t>(1, batches.c_size * batches.first.k), count = batches.count();
  if (count < kManyBatches && macs > kWorthAThread) {
    for (int64_t i = 0; i < count; ++i) multiply_halves(l.host(), halves(type, batches.at(i)));
    return;
  }
  l.host().parallel_for(count, std::max<int64_t>(1, kWorthAThread / macs), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) multiply_halves(halves(type, batches.at(i)));
  });
}

Outcome launch(const Launch& l) {
  switch (l.input(0).dtype()) {
    case DType::f32:
      products(l, l.input(0).data<float>(), l.input(1).data<float>(), l.output(0).data<float>());
      break;
    case DType::f64:
      products(l, l.input(0).data<double>(), l.input(1).data<double>(), l.output(0).data<double>());
      break;
    default: products_of_halves(l, l.input(0).dtype() == DType::f16 ? Stored::f16 : Stored::bf16);
  }
  return Outcome::ok();
}

}  // namespace

extern const KernelRecord matmul_packed = {
    .op = "matmul",
    .variant = "packed",
    .reads = {"transpose_a", "transpose_b"},
    .accepts = accepts,
    .prepare = prepare,
    .release = release_packed,
    .launch = launch,
    .determinism = WEFT_DETERMINISM_RUN,  // the blocks of k depend on the other sizes
    .accumulates = true,
    .pack = pack,
};

}  // namespace weft::native
