#include "backends/native/steps.h"

#include <algorithm>
#include <cmath>

#include "backends/native/targets.h"
#include "weft/shared/numbers.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/steps.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/native/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::native {
namespace HWY_NAMESPACE {

// Whole vectors, then a partial one.
template <int N, bool kCheap, class Op>
HWY_INLINE void run(const float* const* x, uint32_t single, float* y, int64_t n, bool past, Op op) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  VF fixed[N];
  float one[N];  // read once: y may overlap it
  int64_t stride[N];
  for (int k = 0; k < N; ++k) {
    const bool fixed_one = single >> k & 1;
    stride[k] = fixed_one ? 0 : 1;
    one[k] = fixed_one ? *x[k] : 0;
    fixed[k] = set(one[k]);
  }
  const auto at = [&](int k, int64_t i) { return stride[k] ? hn::LoadU(d, x[k] + i) : fixed[k]; };
  const auto put = [&](VF v, int64_t i) {
    if (kCheap && past)
      hn::Stream(v, d, y + i);
    else
      hn::StoreU(v, d, y + i);
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    if constexpr (N == 1) put(op(at(0, i)), i);
    if constexpr (N == 2) put(op(at(0, i), at(1, i)), i);
    if constexpr (N == 3) put(op(at(0, i), at(1, i), at(2, i)), i);
  }
  if (i == n) return;
  HWY_ALIGN float rest[(N + 1) * HWY_MAX_BYTES / 4] = {};
  for (int k = 0; k < N; ++k)
    for (int64_t j = 0; j < n - i; ++j) rest[k * lanes + j] = stride[k] ? x[k][i + j] : one[k];
  const auto last = [&](int k) { return hn::Load(d, rest + k * lanes); };
  if constexpr (N == 1) hn::Store(op(last(0)), d, rest + N * lanes);
  if constexpr (N == 2) hn::Store(op(last(0), last(1)), d, rest + N * lanes);
  if constexpr (N == 3) hn::Store(op(last(0), last(1), last(2)), d, rest + N * lanes);
  std::copy_n(rest + N * lanes, n - i, y + i);
}

HWY_INLINE VF truth(hn::Mask<F> m) { return hn::IfThenElseZero(m, set(1.0f)); }
HWY_INLINE hn::Mask<F> is_true(VF x) { return hn::Not(hn::Eq(x, set(0.0f))); }  // a NaN is
HWY_INLINE hn::Mask<F> ordered(VF a, VF b) { return hn::And(hn::Eq(a, a), hn::Eq(b, b)); }
// The larger, or NaN if either is; +0 of two zeros. On x86 the two operand orders of one instruction differ
// for NaN and for zeros of different signs.
HWY_INLINE VF maximum(VF a, VF b) {
  const VF m = hn::Max(a, b), other = hn::Max(b, a);
  const auto number = HWY_ARCH_X86 ? hn::Eq(m, other) : ordered(a, b);
  return hn::IfThenElse(number, hn::And(m, other), hn::Add(a, b));
}
HWY_INLINE VF minimum(VF a, VF b) {
  const VF m = hn::Min(a, b), other = hn::Min(b, a);
  const auto number = HWY_ARCH_X86 ? hn::Eq(m, other) : ordered(a, b);
  return hn::IfThenElse(number, hn::Or(m, other), hn::Add(a, b));
}

#define WEFT_UNARY(name, expression)                                                         \
  void step_##name(const float* const* x, uint32_t single, float* y, int64_t n, bool past) { \
    run<1, false>(x, single, y, n, past, [](VF a) HWY_ATTR { return expression; });          \
  }
#define WEFT_BINARY(name, expression)                                                        \
  void step_##name(const float* const* x, uint32_t single, float* y, int64_t n, bool past) { \
    run<2, true>(x, single, y, n, past, [](VF a, VF b) HWY_ATTR { return expression; });     \
  }
WEFT_BINARY(add, hn::Add(a, b))
WEFT_BINARY(sub, hn::Sub(a, b))
WEFT_BINARY(mul, hn::Mul(a, b))
WEFT_BINARY(div, hn::Div(a, b))
WEFT_BINARY(maximum, maximum(a, b))
WEFT_BINARY(minimum, minimum(a, b))
WEFT_BINARY(less, truth(hn::Lt(a, b)))
WEFT_BINARY(equal, truth(hn::Eq(a, b)))
WEFT_UNARY(exp, exp(a))
WEFT_UNARY(log, log(a))
WEFT_UNARY(sqrt, hn::Sqrt(a))
WEFT_UNARY(sin, sin(a))
WEFT_UNARY(cos, cos(a))
WEFT_UNARY(tanh, tanh(a))
WEFT_UNARY(erf, erf(a))
WEFT_UNARY(floor, hn::Floor(a))
WEFT_UNARY(round, hn::Round(a))
WEFT_UNARY(truth_of, truth(is_true(a)))
#undef WEFT_UNARY
#undef WEFT_BINARY
void step_where(const float* const* x, uint32_t single, float* y, int64_t n, bool past) {
  run<3, true>(x, single, y, n, past,
               [](VF c, VF a, VF b) HWY_ATTR { return hn::IfThenElse(is_true(c), a, b); });
}

constexpr NamedStep kSteps[] = {
    {"add", 2, step_add, true},          {"sub", 2, step_sub, true},
    {"mul", 2, step_mul, true},          {"div", 2, step_div, true},
    {"maximum", 2, step_maximum, false}, {"minimum", 2, step_minimum, false},
    {"less", 2, step_less, true},        {"equal", 2, step_equal, true},
    {"exp", 1, step_exp, false},         {"log", 1, step_log, false},
    {"sqrt", 1, step_sqrt, true},        {"sin", 1, step_sin, false},
    {"cos", 1, step_cos, false},         {"tanh", 1, step_tanh, false},
    {"erf", 1, step_erf, false},         {"floor", 1, step_floor, true},
    {"round", 1, step_round, true},      {"where", 3, step_where, true},
    {"truth", 1, step_truth_of, true},
};
const NamedStep* steps(int* n) {
  *n = static_cast<int>(std::size(kSteps));
  return kSteps;
}

// ---- links

constexpr Link::Op kLinkOps[] = {Link::Op::add, Link::Op::sub, Link::Op::mul, Link::Op::maximum,
                                 Link::Op::minimum};
constexpr Step kLinkSteps[] = {step_add, step_sub, step_mul, step_maximum, step_minimum};
const Link::Op* link_of(Step step) {
  const auto at = std::find(std::begin(kLinkSteps), std::end(kLinkSteps), step);
  return at == std::end(kLinkSteps) ? nullptr : &kLinkOps[at - std::begin(kLinkSteps)];
}

constexpr int kBlock = 4;  // vectors that pass through the links together

template <class Op>
HWY_INLINE void apply_link(const Link& l, int64_t i, VF* v, Op op) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int k = 0; k < kBlock; ++k) {
    const VF other = l.single ? set(*l.other) : hn::LoadU(d, l.other + i + k * lanes);
    v[k] = l.swapped ? op(other, v[k]) : op(v[k], other);
  }
}
HWY_INLINE void apply_link(const Link& l, int64_t i, VF* v) {
  switch (l.op) {
    case Link::Op::add: return apply_link(l, i, v, [](VF a, VF b) HWY_ATTR { return hn::Add(a, b); });
    case Link::Op::sub: return apply_link(l, i, v, [](VF a, VF b) HWY_ATTR { return hn::Sub(a, b); });
    case Link::Op::mul: return apply_link(l, i, v, [](VF a, VF b) HWY_ATTR { return hn::Mul(a, b); });
    case Link::Op::maximum: return apply_link(l, i, v, [](VF a, VF b) HWY_ATTR { return maximum(a, b); });
    case Link::Op::minimum: return apply_link(l, i, v, [](VF a, VF b) HWY_ATTR { return minimum(a, b); });
  }
}

void run_all_links(const float* x, bool single, const Link* links, int n_links, float* y, int64_t n,
                   bool past) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float first = *x;
  int64_t i = 0;
  for (; i + kBlock * lanes <= n; i += kBlock * lanes) {
    VF v[kBlock];
    for (int k = 0; k < kBlock; ++k) v[k] = single ? set(first) : hn::LoadU(d, x + i + k * lanes);
    for (int l = 0; l < n_links; ++l) apply_link(links[l], i, v);
    for (int k = 0; k < kBlock; ++k)
      if (past)
        hn::Stream(v[k], d, y + i + k * lanes);
      else
        hn::StoreU(v[k], d, y + i + k * lanes);
  }
  // The rest, link by link.
  const float* from = x + (single ? 0 : i);
  float rest[kBlock * HWY_MAX_BYTES / 4];
  for (int l = 0; l < n_links && i < n; ++l) {
    const float* in[2] = {from, links[l].other + (links[l].single ? 0 : i)};
    uint32_t singles = (l == 0 && single ? 1u : 0u) | (links[l].single ? 2u : 0u);
    if (links[l].swapped) std::swap(in[0], in[1]), singles = (singles >> 1 & 1) | (singles & 1) << 1;
    kLinkSteps[static_cast<int>(links[l].op)](in, singles, rest, n - i, false);
    from = rest;
  }
  std::copy_n(from, n - i, y + i);
}

// ---- memory

void widen_half(const shared::Half* from, float* to, int64_t n) {
  const F d;
  const hn::Rebind<hwy::float16_t, F> dh;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::PromoteTo(d, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(from) + i)), d, to + i);
  for (; i < n; ++i) to[i] = static_cast<float>(shared::load(from[i]));
}
void narrow_half(const float* from, shared::Half* to, int64_t n) {
  const F d;
  const hn::Rebind<hwy::float16_t, F> dh;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  // Only hardware conversion is sure to round to nearest even; Highway's emulation may not.
#if HWY_TARGET <= HWY_AVX2
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::DemoteTo(dh, hn::LoadU(d, from + i)), dh, reinterpret_cast<hwy::float16_t*>(to) + i);
#else
  (void)dh, (void)lanes;
#endif
  for (; i < n; ++i) to[i] = shared::store<shared::Half>(static_cast<double>(from[i]));
}
void widen_brain(const uint16_t* from, float* to, int64_t n) {
  const F d;
  const hn::Rebind<uint32_t, F> du;
  const hn::Rebind<uint16_t, F> dh;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(dh, from + i)))), d, to + i);
  for (; i < n; ++i) to[i] = static_cast<float>(shared::load(shared::BFloat{from[i]}));
}
void narrow_brain(const float* from, uint16_t* to, int64_t n) {
  const F d;
  const hn::Rebind<uint32_t, F> du;
  const hn::Rebind<uint16_t, F> dh;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto x = hn::LoadU(d, from + i);
    const auto bits = hn::BitCast(du, x);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
    auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fff))));
    const auto quiet = hn::Or(hn::ShiftRight<16>(bits), hn::Set(du, 0x40));  // a NaN stays one
    rounded = hn::IfThenElse(hn::RebindMask(du, hn::Eq(x, x)), rounded, quiet);
    hn::StoreU(hn::DemoteTo(dh, hn::BitCast(hn::RebindToSigned<decltype(du)>(), rounded)), dh, to + i);
  }
  for (; i < n; ++i) to[i] = shared::store<shared::BFloat>(static_cast<double>(from[i])).bits;
}
void stream_f32(const float* from, float* to, int64_t n) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::Stream(hn::LoadU(d, from + i), d, to + i);
  std::copy_n(from + i, n - i, to + i);
}
const char* this_target() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace weft::native
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::native {

HWY_EXPORT(steps);
HWY_EXPORT(link_of);
HWY_EXPORT(run_all_links);
HWY_EXPORT(widen_half);
HWY_EXPORT(narrow_half);
HWY_EXPORT(widen_brain);
HWY_EXPORT(narrow_brain);
HWY_EXPORT(stream_f32);
HWY_EXPORT(this_target);

int step_count() {
  int n;
  HWY_DYNAMIC_DISPATCH(steps)(&n);
  return n;
}
const NamedStep& step_at(int i) {
  int n;
  return HWY_DYNAMIC_DISPATCH(steps)(&n)[i];
}
const NamedStep* find_step(std::string_view op) {
  for (int i = 0; i < step_count(); ++i)
    if (step_at(i).op == op) return &step_at(i);
  return nullptr;
}

const Link::Op* find_link(Step step) { return HWY_DYNAMIC_DISPATCH(link_of)(step); }
void run_links(const float* x, bool single, const Link* links, int n_links, float* y, int64_t n, bool past) {
  HWY_DYNAMIC_DISPATCH(run_all_links)(x, single, links, n_links, y, n, past);
}

void widen(Stored type, const void* from, float* to, int64_t n) {
  switch (type) {
    case Stored::f32: std::copy_n(static_cast<const float*>(from), n, to); return;
    case Stored::f16: HWY_DYNAMIC_DISPATCH(widen_half)(static_cast<const shared::Half*>(from), to, n); return;
    case Stored::bf16: HWY_DYNAMIC_DISPATCH(widen_brain)(static_cast<const uint16_t*>(from), to, n); return;
    case Stored::truth: break;
  }
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<const uint8_t*>(from)[i] != 0 ? 1.0f : 0.0f;
}
void narrow(Stored type, const float* from, void* to, int64_t n) {
  switch (type) {
    case Stored::f32: std::copy_n(from, n, static_cast<float*>(to)); return;
    case Stored::f16: HWY_DYNAMIC_DISPATCH(narrow_half)(from, static_cast<shared::Half*>(to), n); return;
    case Stored::bf16: HWY_DYNAMIC_DISPATCH(narrow_brain)(from, static_cast<uint16_t*>(to), n); return;
    case Stored::truth: break;
  }
  for (int64_t i = 0; i < n; ++i) static_cast<uint8_t*>(to)[i] = from[i] != 0;
}
void stream(const float* from, float* to, int64_t n) { HWY_DYNAMIC_DISPATCH(stream_f32)(from, to, n); }
void end_stream() { hwy::FlushStream(); }
const char* target_name() { return HWY_DYNAMIC_DISPATCH(this_target)(); }

}  // namespace weft::native
#endif
