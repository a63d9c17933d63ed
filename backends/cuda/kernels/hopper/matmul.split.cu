#include "../../hopper/multiprocessors.hpp"
#include "../../hopper/split_call.hpp"
#include "../../hopper/split_sizes.hpp"

// matmul, linear and a layer that is added to the residual, of f32, on the tensor cores of architecture 9.0
// (hopper/split_kernel.hpp).
namespace weft::cuda {

using namespace backend;
using hopper::multiprocessors, hopper::SplitCall, hopper::SplitProduct;

namespace {

constexpr uint64_t kAlignment = 16;
uint64_t aligned(uint64_t at) { return (at + kAlignment - 1) / kAlignment * kAlignment; }

Support accepts(const OpCall& c) {
  if (multiprocessors() == 0) return Support::no("wants GPUs of architecture 9.0 and of one size");
  SplitProduct unused;
  return hopper::split_product(c, unused);
}

/// How a product is computed, by its sizes alone. More shares of k than one make the order of additions
/// depend on how many rows there are, so they need a caller who takes that.
SplitCall planned(const OpCall& c, const Product& product, int* way) {
  SplitCall call{.m = product.m, .n = product.n, .k = product.k, .batch = product.batch};
  call.transpose_a = product.transpose_a, call.transpose_b = product.transpose_b;
  call.one_a = call.batch > 1 && product.a_stride == 0, call.one_b = call.batch > 1 && product.b_stride == 0;
  const bool may_share = c.determinism() <= WEFT_DETERMINISM_RUN;
  call.shares = hopper::best_split(call, may_share ? hopper::kMostSplitShares : 1, way).shares;
  return call;
}

/// The planes of b, and after them the sums of the shares.
uint64_t bytes_of_planes(const SplitCall& call) {
  return aligned(static_cast<uint64_t>(call.plane_elements()) * sizeof(uint16_t));
}

Outcome prepare(const OpCall& c, weft_plan& plan) {
  SplitProduct product;
  if (const auto s = hopper::split_product(c, product); !s)
    return Outcome::fail(WEFT_UNSUPPORTED, "{}", s.reason);
  int way = 0;
  const SplitCall call = planned(c, product.sizes, &way);
  plan.workspace = bytes_of_planes(call) + kAlignment;
  if (call.shares > 1) {
    plan.determinism = WEFT_DETERMINISM_RUN;
    plan.workspace += static_cast<uint64_t>(call.shares * call.elements()) * sizeof(float);
  }
  return Outcome::ok();
}

Outcome launch(const Launch& l) {
  SplitProduct product;
  if (const auto s = hopper::split_product(l.call(), product); !s)
    return Outcome::fail(WEFT_UNSUPPORTED, "{}", s.reason);
  int way = 0;
  SplitCall call = planned(l.call(), product.sizes, &way);
  const auto input = [&](int i) { return i < 0 ? nullptr : l.input(i).data<const float>(); };
  call.a = input(product.a), call.b = input(product.b), call.bias = input(product.bias);
  call.c = l.output(0).data<float>();
  call.onto = l.call().accumulates(0) ? call.c : input(product.onto);
  const auto started = [&](unsigned blocks, unsigned threads, uint32_t shared, auto* kernel,
                           const auto&... arguments) {
    return start(l, Grid{blocks}, threads, shared, kernel, arguments...);
  };
  const auto at = [](const void* p) { return reinterpret_cast<uintptr_t>(p); };
  if ((at(call.a) | at(call.b) | at(call.bias) | at(call.onto) | at(call.c)) % kAlignment)
    return started(static_cast<unsigned>(hopper::divided_up(call.elements(), 256)), 256u, 0u,
                   hopper::split_elements, call);
  const auto space = aligned(reinterpret_cast<uintptr_t>(l.workspace().data()));
  call.planes = reinterpret_cast<uint16_t*>(space);
  call.sums = reinterpret_cast<float*>(space + bytes_of_planes(call));
  return hopper::with_split_tiles(way, [&]<class Tiles>(Tiles*) {
    return hopper::run_split_of<Tiles>(call, multiprocessors(), started);
  });
}

}  // namespace

std::span<const KernelRecord> matmul_split() {
  static const auto all = [] {
    KernelRecord product{.op = "matmul",
                         .variant = "split",
                         .reads = {"transpose_a", "transpose_b"},
                         .accepts = accepts,
                         .prepare = prepare,
                         .launch = launch,
                         .determinism = WEFT_DETERMINISM_THREADS,
                         .accumulates = true,
                         .rank = 1};
    KernelRecord linear = product;
    linear.op = "linear", linear.reads = {};
    KernelRecord onto = linear;
    onto.op = "linear_add", onto.accumulates = false;
    return std::vector{product, linear, onto};
  }();
  return all;
}

}  // namespace weft::cuda
