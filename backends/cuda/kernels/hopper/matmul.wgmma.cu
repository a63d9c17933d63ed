#include "../../hopper/matmul_call.hpp"
#include "../../hopper/multiprocessors.hpp"
#include "../../skinny.hpp"

// matmul and linear of 16-bit floats on the tensor cores of architecture 9.0 (hopper/matmul_kernel.hpp).
namespace weft::cuda {

using namespace backend;
using hopper::MatmulCall, hopper::multiprocessors;

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
  for (const auto& [operand, what] : {std::pair{c.input(0), "the first operand"},
                                      {c.input(1), "the second operand"},
                                      {c.input(2), "the bias"},
                                      {c.output(0), "the result"}})
    if (auto s = accepts_operand(operand, what); !s) return s;
  return Support::yes();
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

/// The sizes of a call, or why it is refused.
Support sizes_of(const OpCall& c, MatmulCall& call) {
  if (auto types = accepts_types(c); !types) return types;
  call.dtype = c.output(0).dtype();
  call.accumulate = c.accumulates(0);
  if (auto sizes = c.op() == "linear" ? linear_sizes(c, call) : matmul_sizes(c, call); !sizes) return sizes;
  if (call.m >= kMostElements || call.elements() >= int64_t{1} << 39 ||
      call.batch * ((call.m + 127) / 128) * ((call.n + 127) / 128) >= kMostElements)
    return Support::no("{} matrices of {} x {}", call.batch, call.m, call.n);
  return Support::yes();
}

Support accepts(const OpCall& c) {
  if (multiprocessors() == 0) return Support::no("wants GPUs of architecture 9.0 and of one size");
  MatmulCall unused;
  return sizes_of(c, unused);
}

/// By the sizes alone. More shares of k than one make the order of additions depend on how many rows there
/// are, so they need a caller who takes that.
hopper::Division division_of(const OpCall& c, const MatmulCall& call, int* way) {
  return hopper::best_division(call, c.determinism() > WEFT_DETERMINISM_RUN ? 1 : hopper::kMostShares, way);
}

Outcome prepare(const OpCall& c, weft_plan& plan) {
  MatmulCall call;
  if (const auto s = sizes_of(c, call); !s) return Outcome::fail(WEFT_UNSUPPORTED, "{}", s.reason);
  int way = 0;
  const int shares = division_of(c, call, &way).shares;
  if (shares > 1) plan.workspace = static_cast<uint64_t>(shares * call.elements()) * sizeof(float) + 16;
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
  T* const c = static_cast<T*>(call.c) + at;
  float sum = 0;
  for (int64_t k = 0; k < call.k; ++k)
    sum += widened(a[call.transpose_a ? k * call.m + m : m * call.k + k]) *
           widened(b[call.transpose_b ? n * call.k + k : k * call.n + n]);
  if (call.bias) sum += widened(static_cast<const T*>(call.bias)[n]);
  if (call.accumulate) sum += widened(*c);
  *c = narrowed<T>(sum);
}

template <class T>
Outcome run_for(const Launch& l, const MatmulCall& call, int way) {
  const auto at = [](const void* p) { return reinterpret_cast<uintptr_t>(p); };
  if ((at(call.a) | at(call.b) | at(call.c) | at(call.bias)) % 16 == 0) return run<T>(l, call, way);
  const Grid blocks{static_cast<unsigned>(hopper::divided_up(call.elements(), 256))};
  return start(l, blocks, 256, 0, matmul_elements<T>, call);
}

Outcome launch(const Launch& l) {
  MatmulCall call;
  if (const auto s = sizes_of(l.call(), call); !s) return Outcome::fail(WEFT_UNSUPPORTED, "{}", s.reason);
  int way = 0;
  call.shares = division_of(l.call(), call, &way).shares;
  call.a = l.input(0).data(), call.b = l.input(1).data(), call.c = l.output(0).data();
  if (l.call().n_inputs() > 2 && l.input(2).has()) call.bias = l.input(2).data();
  if (call.shares > 1)
    call.sums = reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(l.workspace().data()) + 15) / 16 * 16);
  return call.dtype == DType::bf16 ? run_for<bf16>(l, call, way) : run_for<f16>(l, call, way);
}

}  // namespace

std::span<const KernelRecord> matmul_wgmma() {
  static const KernelRecord all[] = {{.op = "matmul",
                                      .variant = "wgmma",
                                      .reads = {"transpose_a", "transpose_b"},
                                      .accepts = accepts,
                                      .prepare = prepare,
                                      .launch = launch,
                                      .determinism = WEFT_DETERMINISM_THREADS,
                                      .accumulates = true},
                                     {.op = "linear",
                                      .variant = "wgmma",
                                      .accepts = accepts,
                                      .prepare = prepare,
                                      .launch = launch,
                                      .determinism = WEFT_DETERMINISM_THREADS,
                                      .accumulates = true}};
  return all;
}

}  // namespace weft::cuda
