#include "backends/native/int8_product.h"
#include "backends/native/packing.h"

// scaled_matmul of 8-bit integers. A constant b comes packed.
namespace weft::native {

using namespace weft::backend;

static Support accepts(const OpCall& c) {
  if (c.n_inputs() != 5 || c.n_outputs() != 1)
    return Support::no("wants 5 inputs and 1 output, got {} and {}", c.n_inputs(), c.n_outputs());
  const TypeView a = c.input(0), b = c.input(1), bias = c.input(4), y = c.output(0);
  if (a.dtype() != DType::i8 || b.dtype() != DType::i8)
    return Support::no("multiplies i8 by i8, got {} and {}", a.dtype(), b.dtype());
  if (y.dtype() != DType::f32 && !is_half(y.dtype()))
    return Support::no("computes in f32, f16 and bf16, got {}", y.dtype());
  if (bias.has() && bias.dtype() != y.dtype())
    return Support::no("bias must be {}, got {}", y.dtype(), bias.dtype());
  if (const int64_t k = b.max()[1]; k >= kInt8Terms)
    return Support::no("sums of {} products may be more than i32 holds; wants fewer than {}", k, kInt8Terms);
  return Support::yes();
}

static Outcome prepare(const OpCall& c, weft_plan& plan) {
  const TypeView b = c.input(1);
  if (!b.constant() || b.max()[0] * b.max()[1] < kLeastPacked) return Outcome::ok();
  const int64_t n = b.max()[0], k = b.max()[1];
  want_packed(plan, 1, packed_int8_id(n, k), static_cast<uint64_t>(packed_int8_size(n, k)));
  return Outcome::ok();
}

static Outcome pack(const weft_plan&, int64_t, TensorView from, TensorView to, const Host& host) {
  pack_int8(host, from.dim(0), from.dim(1), from.data<int8_t>(), to.data<uint8_t>());
  return Outcome::ok();
}

static Stored stored_of(DType t) {
  return t == DType::f32 ? Stored::f32 : t == DType::f16 ? Stored::f16 : Stored::bf16;
}

static Outcome launch(const Launch& l) {
  const TensorView b = l.input(1), a_scale = l.input(2), b_scale = l.input(3), bias = l.input(4),
                   y = l.output(0);
  Int8Product p{.n = b.dim(0), .k = b.dim(1)};
  if (p.n == 0) return Outcome::ok();
  p.m = y.size() / p.n;
  p.a = l.input(0).data<int8_t>();
  if (b.layout() == 1)
    p.packed_b = b.data<uint8_t>();
  else
    p.b = b.data<int8_t>();
  p.a_scale = a_scale.data<float>(), p.each_a = a_scale.rank() > 0;
  p.b_scale = b_scale.data<float>(), p.each_b = b_scale.rank() > 0;
  p.type = stored_of(y.dtype());
  p.bias = bias.has() ? bias.data() : nullptr, p.c = y.data();
  multiply_int8(l.host(), p);
  return Outcome::ok();
}

extern const KernelRecord scaled_matmul_int8 = {
    .op = "scaled_matmul",
    .variant = "int8",
    .reads = {"dtype"},
    .accepts = accepts,
    .prepare = prepare,
    .release = release_packed,
    .launch = launch,
    .determinism = WEFT_DETERMINISM_THREADS,  // sums are exact, and each result is one of them
    .pack = pack,
};

}  // namespace weft::native
