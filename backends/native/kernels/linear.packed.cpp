#include <algorithm>

#include "backends/native/half_product.h"
#include "backends/native/packing.h"
#include "backends/native/split_product.h"
#include "backends/native/spread.h"

// x weightᵀ + bias as one product whose rows start from the bias, so the result is written once. Few rows
// read the weight in place, many pack it; a constant weight comes packed.
namespace weft::native {

using namespace weft::backend;

static Support accepts(const OpCall& c) {
  if (c.n_inputs() != 3 || c.n_outputs() != 1)
    return Support::no("wants 3 inputs and 1 output, got {} and {}", c.n_inputs(), c.n_outputs());
  const TypeView x = c.input(0), weight = c.input(1), bias = c.input(2), y = c.output(0);
  for (const TypeView t : {x, weight, bias})
    if (t.has() && t.dtype() != y.dtype())
      return Support::no("operands must have one dtype, got {}", t.dtype());
  if (y.dtype() != DType::f32 && y.dtype() != DType::f64 && !is_half(y.dtype()))
    return Support::no("computes in f64, f32, f16 and bf16, got {}", y.dtype());
  if (!x.has() || !weight.has() || x.rank() < 1 || x.rank() != y.rank() ||
      !std::ranges::equal(x.max().first(static_cast<size_t>(x.rank() - 1)),
                          y.max().first(static_cast<size_t>(y.rank() - 1))))
    return Support::no("x and the result must have the same rows");
  const int64_t in = x.max().back(), out = y.max().back();
  if (weight.rank() != 2 || weight.max()[0] != out || weight.max()[1] != in)
    return Support::no("weight must have shape [{}, {}], got {}", out, in, weight.max());
  if (!bias.has() || (bias.rank() == 1 && bias.max()[0] == out)) return Support::yes();
  return Support::no("bias must have shape [{}], got {}", out, bias.max());
}

// The weight as b of a product.
template <class T>
static Product<T> by_weight(int64_t out, int64_t in, const T* weight) {
  return {.n = out, .k = in, .b = weight, .b_row = 1, .b_column = in};
}

template <class T>
static void want(weft_plan& plan, int64_t out, int64_t in) {
  if (out * in < kLeastPacked) return;
  const auto p = by_weight<T>(out, in, nullptr);
  want_packed(plan, 1, packed_id(p), static_cast<uint64_t>(packed_size(p)) * sizeof(T));
}
static Outcome prepare(const OpCall& c, weft_plan& plan) {
  const TypeView weight = c.input(1);
  if (!weight.constant()) return Outcome::ok();
  if (weight.dtype() == DType::f32) {
    const auto p = by_weight<float>(weight.max()[0], weight.max()[1], nullptr);
    int64_t rows = 1;
    for (const int64_t d : c.input(0).max().first(static_cast<size_t>(c.input(0).rank() - 1))) rows *= d;
    if (worth_splitting(c, p, rows)) return want_split(plan, 1, p), Outcome::ok();
  }
  if (weight.dtype() == DType::f32) want<float>(plan, weight.max()[0], weight.max()[1]);
  if (weight.dtype() == DType::f64) want<double>(plan, weight.max()[0], weight.max()[1]);
  return Outcome::ok();
}

template <class T>
static void pack_weight(TensorView from, TensorView to, const Host& host) {
  pack_whole_b(host, by_weight(from.dim(0), from.dim(1), static_cast<const T*>(from.data<T>())),
               to.data<T>());
}
static Outcome pack(const weft_plan&, int64_t, TensorView from, TensorView to, const Host& host) {
  if (to.layout() == kSplitLayout) {
    pack_split(host, by_weight(from.dim(0), from.dim(1), static_cast<const float*>(from.data<float>())),
               reinterpret_cast<uint8_t*>(to.data<float>()));
    return Outcome::ok();
  }
  from.dtype() == DType::f32 ? pack_weight<float>(from, to, host) : pack_weight<double>(from, to, host);
  return Outcome::ok();
}

template <class T>
static void run(const Launch& l) {
  const TensorView x = l.input(0), weight = l.input(1), bias = l.input(2), y = l.output(0);
  const int64_t in = weight.dim(1), out = weight.dim(0);
  if (out == 0) return;
  auto p = by_weight<T>(out, in, weight.data<T>());
  if (weight.layout() == 1) p.packed_b = p.b;
  p.m = y.size() / out, p.a = x.data<T>(), p.a_row = in;
  p.c = y.data<T>(), p.c_row = out;
  p.start = bias.has() ? bias.data<T>() : nullptr;
  if constexpr (std::is_same_v<T, float>)
    if (weight.layout() == kSplitLayout) return multiply_split(l.host(), p);
  multiply_all<T>(l.host(), 1, p, [&](int64_t) { return p; });
}

static void run_halves(const Launch& l, Stored type) {
  const TensorView x = l.input(0), weight = l.input(1), bias = l.input(2), y = l.output(0);
  const int64_t in = weight.dim(1), out = weight.dim(0);
  if (out == 0) return;
  multiply_halves(l.host(), {.type = type,
                             .m = y.size() / out,
                             .n = out,
                             .k = in,
                             .a = x.data<uint16_t>(),
                             .a_row = in,
                             .b = weight.data<uint16_t>(),
                             .b_row = 1,
                             .b_column = in,
                             .c = y.data<uint16_t>(),
                             .start = bias.has() ? bias.data<uint16_t>() : nullptr});
}

static Outcome launch(const Launch& l) {
  switch (l.output(0).dtype()) {
    case DType::f64: run<double>(l); break;
    case DType::f32: run<float>(l); break;
    default: run_halves(l, l.output(0).dtype() == DType::f16 ? Stored::f16 : Stored::bf16);
  }
  return Outcome::ok();
}

extern const KernelRecord linear_packed = {
    .op = "linear",
    .variant = "packed",
    .accepts = accepts,
    .prepare = prepare,
    .release = release_packed,
    .launch = launch,
    .determinism = WEFT_DETERMINISM_RUN,  // the blocks of k depend on the other sizes
    .pack = pack,
};

}  // namespace weft::native
