#include "../../hopper/matmul_call.hpp"
#include "../../hopper/multiprocessors.hpp"
#include "../../skinny.hpp"

// Products of 16-bit floats on the tensor cores of architecture 9.0 (hopper/matmul_kernel.hpp): matmul and
// linear, and calls that the compiler groups around one of them: a layer that is added to the residual, gelu
// behind a layer, its gradient before one.
namespace weft::cuda {

using namespace backend;
using hopper::MatmulBody, hopper::MatmulCall, hopper::Ending, hopper::multiprocessors;

namespace {

constexpr int64_t kMostElements = int64_t{1} << 31;  // along an axis: coordinates of tiles are int

int64_t elements(std::span<const int64_t> sizes) {
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  return n;
}

Support accepts_operand(TypeView t, const char* what) {
  if (!t.has()) return Support::yes();
  for (int64_t d = 0; d < t.rank(); ++d) {
    const Dim size = t.shape()[d];
    if (!size.known()) return Support::no("{} has sizes from {} to {}", what, size.min(), size.max());
    if (size.max() == 0 || size.max() >= kMostElements)
      return Support::no("{} has an axis of {}", what, size.max());
  }
  // Tiles are copied from and to addresses that are multiples of 16 bytes.
  if (t.rank() > 0 && t.max().back() % 8)
    return Support::no("{} has rows of {} elements, wanted a multiple of 8", what, t.max().back());
  return Support::yes();
}

Support accepts_types(const OpCall& c) {
  const DType t = c.output(0).dtype();
  if (t != DType::f16 && t != DType::bf16) return Support::no("computes in f16 and bf16, got {}", t);
  const auto accepts_all = [&](auto operand, int64_t n, const char* what) {
    for (int64_t i = 0; i < n; ++i) {
      if (auto s = accepts_operand(operand(i), what); !s) return s;
      if (operand(i).has() && operand(i).dtype() != t)
        return Support::no("computes in {}, got {} of {}", t, what, operand(i).dtype());
    }
    return Support::yes();
  };
  if (auto s = accepts_all([&](int64_t i) { return c.input(i); }, c.n_inputs(), "an operand"); !s) return s;
  return accepts_all([&](int64_t i) { return c.output(i); }, c.n_outputs(), "a result");
}

/// The batch of a matmul: matrices one after another on both sides, or one matrix for all on one of them.
Support batch_of(const OpCall& c, MatmulCall& call) {
  const auto leading = [](TypeView t) { return t.max().first(static_cast<size_t>(t.rank() - 2)); };
  const int64_t of_a = elements(leading(c.input(0))), of_b = elements(leading(c.input(1)));
  call.batch = elements(leading(c.output(0)));
  call.one_a = of_a != call.batch, call.one_b = of_b != call.batch;
  if ((call.one_a && of_a != 1) || (call.one_b && of_b != 1))
    return Support::no("its leading axes broadcast: {} and {}", c.input(0).max(), c.input(1).max());
  if (call.one_b && !call.transpose_a)
    call.m *= call.batch, call.batch = 1, call.one_b = false;  // rows of one product
  return Support::yes();
}

Support matmul_sizes(const OpCall& c, MatmulCall& call) {
  call.transpose_a = c.attr("transpose_a").integer(), call.transpose_b = c.attr("transpose_b").integer();
  const auto y = c.output(0).max(), a = c.input(0).max();
  call.m = y[y.size() - 2], call.n = y.back(), call.k = a[a.size() - (call.transpose_a ? 2 : 1)];
  return batch_of(c, call);
}

Support linear_sizes(const OpCall& c, MatmulCall& call) {
  call.transpose_b = true;
  call.n = c.output(0).max().back(), call.k = c.input(0).max().back();
  call.m = elements(c.output(0).max()) / call.n;
  if (call.m <= kSkinnyRows) return Support::no("{} rows or fewer are left to linear.skinny", kSkinnyRows);
  return Support::yes();
}

/// Which operands a call has. A sum that the call adds to is `other`, and is c.
MatmulBody operands_of(const OpCall& c) {
  MatmulBody all{.a = 0, .b = 1, .c = 0};
  if (c.op() == "linear" && c.input(2).has()) all.bias = 2;
  if (c.accumulates(0)) all.ending = Ending::sum;
  return all;
}

Support body_sizes(const OpCall& c, const MatmulBody& body, MatmulCall& call) {
  const auto y = c.output(body.c).max(), a = c.input(body.a).max(), b = c.input(body.b).max();
  call.ending = body.ending, call.transpose_b = body.transpose_b;
  if (b.size() != 2 || y.empty()) return Support::no("its operands are views of others");
  call.n = y.back(), call.k = b[body.transpose_b ? 1 : 0], call.m = elements(y) / call.n;
  const auto has = [&](int input, int64_t n) { return input < 0 || elements(c.input(input).max()) == n; };
  const bool fits = b[body.transpose_b ? 0 : 1] == call.n && elements(a) == call.m * call.k &&
                    has(body.bias, call.n) && has(body.other, call.m * call.n);
  if (!fits) return Support::no("its operands are views of others");
  if (call.m <= kSkinnyRows) return Support::no("{} rows or fewer are left to others", kSkinnyRows);
  return Support::yes();
}

Support sizes_by_op(const OpCall& c, MatmulCall& call, MatmulBody& body) {
  if (c.op() == "matmul" || c.op() == "linear") {
    body = operands_of(c);
    call.ending = body.ending;
    return c.op() == "linear" ? linear_sizes(c, call) : matmul_sizes(c, call);
  }
  const auto found = hopper::matmul_body(c);
  if (!found) return Support::no("the body is more than a product, or another than those known here");
  if (c.accumulate() != 0) return Support::no("adds to one operand only");
  body = *found;
  return body_sizes(c, body, call);
}

/// The sizes of a call, or why it is refused.
Support sizes_of(const OpCall& c, MatmulCall& call, MatmulBody& body) {
  if (auto types = accepts_types(c); !types) return types;
  call.dtype = c.output(0).dtype();
  if (auto sizes = sizes_by_op(c, call, body); !sizes) return sizes;
  if (call.m >= kMostElements || call.elements() >= int64_t{1} << 39 ||
      call.batch * ((call.m + 127) / 128) * ((call.n + 127) / 128) >= kMostElements)
    return Support::no("{} matrices of {} x {}", call.batch, call.m, call.n);
  return Support::yes();
}

Support accepts(const OpCall& c) {
  if (multiprocessors() == 0) return Support::no("wants GPUs of architecture 9.0 and of one size");
  MatmulCall unused;
  MatmulBody body;
  return sizes_of(c, unused, body);
}

/// By the sizes alone. More shares of k than one make the order of additions depend on how many rows there
/// are, so they need a caller who takes that.
hopper::Division division_of(const OpCall& c, const MatmulCall& call, int* way) {
  return hopper::best_division(call, c.determinism() > WEFT_DETERMINISM_RUN ? 1 : hopper::kMostShares, way);
}

Outcome prepare(const OpCall& c, weft_plan& plan) {
  MatmulCall call;
  MatmulBody body;
  if (const auto s = sizes_of(c, call, body); !s) return Outcome::fail(WEFT_UNSUPPORTED, "{}", s.reason);
  int way = 0;
  call.shares = division_of(c, call, &way).shares;
  if (call.shares > 1) {
    plan.determinism = WEFT_DETERMINISM_RUN;
    plan.workspace = static_cast<uint64_t>(call.shares * call.elements()) * sizeof(float) + 16;
  }
  return Outcome::ok();
}

template <class T>
Outcome run(const Launch& l, const MatmulCall& call, int way) {
  const auto started = [&](unsigned blocks, unsigned threads, uint32_t shared, auto* kernel,
                           const auto&... arguments) {
    return start(l, Grid{blocks}, threads, shared, kernel, arguments...);
  };
  return hopper::with_tiles(way, [&]<class Tiles>(Tiles*) {
    return hopper::run_matmul_of<T, Tiles>(call, multiprocessors(), started);
  });
}

/// The same product where an operand begins within 16 bytes: an element a thread, and slow.
template <class T>
__global__ void __launch_bounds__(256) matmul_elements(const __grid_constant__ MatmulCall call) {
  wait_for_kernels_before();
  let_next_kernel_start();
  const int64_t at = int64_t{blockIdx.x} * 256 + threadIdx.x, of_matrix = call.m * call.n;
  if (at >= call.batch * of_matrix) return;
  const int64_t batch = at / of_matrix, m = at % of_matrix / call.n, n = at % call.n;
  const T* const a = static_cast<const T*>(call.a) + (call.one_a ? 0 : batch * call.m * call.k);
  const T* const b = static_cast<const T*>(call.b) + (call.one_b ? 0 : batch * call.k * call.n);
  float sum = 0;
  for (int64_t k = 0; k < call.k; ++k)
    sum += widened(a[call.transpose_a ? k * call.m + m : m * call.k + k]) *
           widened(b[call.transpose_b ? n * call.k + k : k * call.n + n]);
  if (call.bias) sum += widened(static_cast<const T*>(call.bias)[n]);
  T* const other = static_cast<T*>(call.other) + at;
  if (call.ending == Ending::sum) sum += widened(*other);
  float group[hopper::Gelu::kTogether] = {sum}, at_other[hopper::Gelu::kTogether] = {};
  if (call.ending == Ending::gelu_slope) {
    at_other[0] = widened(*other);
    hopper::Gelu::times_slope(group, at_other);
    sum = group[0];
  }
  const T c = narrowed<T>(sum);
  static_cast<T*>(call.c)[at] = c;
  if (call.ending == Ending::gelu) {
    group[0] = widened(c);
    hopper::Gelu::apply(group);
    *other = narrowed<T>(group[0]);
  }
}

template <class T>
Outcome run_for(const Launch& l, const MatmulCall& call, int way) {
  const auto at = [](const void* p) { return reinterpret_cast<uintptr_t>(p); };
  if ((at(call.a) | at(call.b) | at(call.c) | at(call.bias) | at(call.other)) % 16 == 0)
    return run<T>(l, call, way);
  const Grid blocks{static_cast<unsigned>(hopper::divided_up(call.elements(), 256))};
  return start(l, blocks, 256, 0, matmul_elements<T>, call);
}

Outcome launch(const Launch& l) {
  MatmulCall call;
  MatmulBody body;
  if (const auto s = sizes_of(l.call(), call, body); !s)
    return Outcome::fail(WEFT_UNSUPPORTED, "{}", s.reason);
  int way = 0;
  call.shares = division_of(l.call(), call, &way).shares;
  const auto input = [&](int i) -> const void* { return i < 0 ? nullptr : l.input(i).data(); };
  call.a = input(body.a), call.b = input(body.b), call.bias = input(body.bias);
  call.c = l.output(body.c).data();
  call.other = l.call().accumulates(0) ? call.c : const_cast<void*>(input(body.other));
  if (call.ending == Ending::gelu) call.other = l.output(body.second).data();
  call.counters = queue_of(l).counters();
  call.stream = queue_of(l).stream;
  if (call.shares > 1)
    call.sums = reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(l.workspace().data()) + 15) / 16 * 16);
  return call.dtype == DType::bf16 ? run_for<bf16>(l, call, way) : run_for<f16>(l, call, way);
}

}  // namespace

std::span<const KernelRecord> matmul_wgmma() {
  static const auto all = [] {
    const KernelRecord product{.op = "matmul",
                               .variant = "wgmma",
                               .reads = {"transpose_a", "transpose_b"},
                               .accepts = accepts,
                               .prepare = prepare,
                               .launch = launch,
                               .determinism = WEFT_DETERMINISM_THREADS,
                               .accumulates = true};
    std::vector<KernelRecord> records = {product};
    for (const char* op : {"linear", "linear_add", "linear_gelu", "matmul_gelu_grad"}) {
      records.push_back(product);
      records.back().op = op, records.back().reads = {};
      records.back().accumulates = std::string_view(op) == "linear";
    }
    return records;
  }();
  return all;
}

}  // namespace weft::cuda
