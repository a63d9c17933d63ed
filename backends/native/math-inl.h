// Functions of f32 vectors, for files that Highway compiles once for each instruction set. Include after
// hwy/highway.h, outside of namespaces. Errors are in ulp of f32; each op's test cases check its bound.

#if defined(WEFT_NATIVE_MATH_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_NATIVE_MATH_INL
#undef WEFT_NATIVE_MATH_INL
#else
#define WEFT_NATIVE_MATH_INL
#endif

HWY_BEFORE_NAMESPACE();
namespace weft::native {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F = hn::ScalableTag<float>;
using VF = hn::Vec<F>;
using I = hn::RebindToSigned<F>;

HWY_INLINE VF set(float v) { return hn::Set(F(), v); }
/// c[0] + c[1] x + c[2] x^2 + ...
template <size_t N>
HWY_INLINE VF polynomial(VF x, const float (&c)[N]) {
  VF y = set(c[N - 1]);
  for (size_t i = N - 1; i-- > 0;) y = hn::MulAdd(y, x, set(c[i]));
  return y;
}
/// 2^n for whole n in [-126, 127].
HWY_INLINE VF power_of_two(hn::Vec<I> n) {
  return hn::BitCast(F(), hn::ShiftLeft<23>(hn::Add(n, hn::Set(I(), 127))));
}

/// 1 ulp. x = n ln 2 + r with |r| <= ln 2 / 2; the power of two is applied in two halves, so that subnormal
/// results are rounded and not flushed.
HWY_INLINE VF exp(VF x) {
  const VF inside = hn::Min(hn::Max(x, set(-104.0f)), set(89.0f));
  const VF n = hn::Round(hn::Mul(inside, set(1.44269504f)));
  VF r = hn::NegMulAdd(n, set(0.693359375f), inside);
  r = hn::NegMulAdd(n, set(-2.12194440e-4f), r);
  constexpr float c[] = {1.0f, 1.0f, 0.5f, 0.166666657f, 0.0416657217f, 0.00833345205f, 0.00139337708f};
  VF y = polynomial(r, c);
  const auto whole = hn::ConvertTo(I(), n), half = hn::ShiftRight<1>(whole);
  y = hn::Mul(hn::Mul(y, power_of_two(half)), power_of_two(hn::Sub(whole, half)));
  return hn::IfThenElse(hn::Eq(x, x), y, x);
}

/// 1 ulp. x = 2^e m with m in [sqrt(1/2), sqrt(2)); log(1 + f) by a polynomial of f = m - 1.
HWY_INLINE VF log(VF x) {
  const I i;
  const auto tiny = hn::Lt(x, set(1.17549435e-38f));
  const VF scaled = hn::IfThenElse(tiny, hn::Mul(x, set(8388608.0f)), x);
  const auto bits = hn::Sub(hn::BitCast(i, scaled), hn::Set(i, 0x3f3504f3));  // sqrt(1/2)
  const auto e = hn::ShiftRight<23>(bits);
  const VF m = hn::BitCast(F(), hn::Add(hn::And(bits, hn::Set(i, 0x007fffff)), hn::Set(i, 0x3f3504f3)));
  const VF k = hn::Sub(hn::ConvertTo(F(), e), hn::IfThenElseZero(tiny, set(23.0f)));
  const VF f = hn::Sub(m, set(1.0f)), s = hn::Div(f, hn::Add(f, set(2.0f))), z = hn::Mul(s, s);
  constexpr float c[] = {0.66666662693f, 0.40000972152f, 0.28498786688f, 0.24279078841f};
  const VF rest = hn::Mul(z, polynomial(z, c)), square = hn::Mul(hn::Mul(f, f), set(0.5f));
  VF y = hn::MulAdd(s, hn::Add(square, rest), hn::Mul(k, set(9.0580006145e-6f)));
  y = hn::MulAdd(k, set(0.69313812256f), hn::Add(hn::Sub(y, square), f));
  y = hn::IfThenElse(hn::Eq(x, set(0.0f)), set(-HUGE_VALF), y);
  y = hn::IfThenElse(hn::Eq(x, set(HUGE_VALF)), x, y);
  return hn::IfThenElse(hn::Ge(x, set(0.0f)), y, hn::IfThenElse(hn::Eq(x, x), set(NAN), x));
}

/// 2 ulp. Odd polynomial near zero, 1 - 2 / (exp(2 |x|) + 1) beyond.
HWY_INLINE VF tanh(VF x) {
  const VF a = hn::Abs(x), z = hn::Mul(x, x);
  constexpr float c[] = {-3.33332819422e-1f, 1.33314422036e-1f, -5.37397155531e-2f, 2.06390887954e-2f,
                         -5.70498872745e-3f};
  const VF near = hn::CopySign(hn::MulAdd(hn::Mul(z, polynomial(z, c)), x, x), x);  // of -0 too
  const VF e = exp(hn::Add(a, a));
  const VF far = hn::CopySign(hn::Sub(set(1.0f), hn::Div(set(2.0f), hn::Add(e, set(1.0f)))), x);
  return hn::IfThenElse(hn::Eq(x, x), hn::IfThenElse(hn::Lt(a, set(0.625f)), near, far), x);
}

/// 2 ulp. Odd polynomial below 0.92, 1 - exp(p(|x|)) beyond.
HWY_INLINE VF erf(VF x) {
  const VF a = hn::Abs(x), s = hn::Mul(x, x);
  constexpr float c[] = {1.28379166e-1f,  -3.76125336e-1f, 1.12819925e-1f,
                         -2.67681349e-2f, 4.99119423e-3f,  -5.96761703e-4f};
  const VF near = hn::MulAdd(polynomial(s, c), x, x);
  const VF b = hn::Min(a, set(4.0f));
  constexpr float t[] = {-1.28717512e-1f, -6.34846687e-1f, -1.06777877e-1f, 2.42546219e-2f,
                         -3.88396438e-3f, 3.83197126e-4f,  -1.72853470e-5f};
  const VF q = hn::MulSub(polynomial(b, t), b, b);
  const VF far = hn::CopySign(hn::Sub(set(1.0f), exp(q)), x);
  return hn::IfThenElse(hn::Eq(x, x), hn::IfThenElse(hn::Lt(a, set(0.921875f)), near, far), x);
}

/// 2 ulp for |x| <= 48039, by three-part reduction to [-pi/4, pi/4]; beyond, and for NaN and infinity, lane
/// by lane.
HWY_INLINE VF sin_or_cos(VF x, int quarter) {
  const F d;
  const I i;
  const VF n = hn::Round(hn::Mul(x, set(0.636619772f)));
  VF r = hn::NegMulAdd(n, set(1.57079601287841796875f), x);
  r = hn::NegMulAdd(n, set(3.1391647326017846e-7f), r);
  r = hn::NegMulAdd(n, set(5.3903025299577648e-15f), r);
  const auto turn = hn::Add(hn::ConvertTo(i, n), hn::Set(i, quarter));
  const VF z = hn::Mul(r, r);
  constexpr float s[] = {-1.66666667e-1f, 8.33332922e-3f, -1.98394174e-4f, 2.71831149e-6f};
  constexpr float c[] = {-0.5f, 4.16666418e-2f, -1.38876373e-3f, 2.44677067e-5f};
  const VF sine = hn::MulAdd(hn::Mul(z, polynomial(z, s)), r, r);
  const VF cosine = hn::MulAdd(z, polynomial(z, c), set(1.0f));
  const auto one = hn::Set(i, 1), two = hn::Set(i, 2);
  VF y = hn::IfThenElse(hn::RebindMask(d, hn::Eq(hn::And(turn, one), one)), cosine, sine);
  y = hn::Xor(y, hn::BitCast(d, hn::ShiftLeft<30>(hn::And(turn, two))));
  if (HWY_LIKELY(hn::AllTrue(d, hn::Le(hn::Abs(x), set(48039.0f))))) return y;
  HWY_ALIGN float in[HWY_MAX_BYTES / 4], out[HWY_MAX_BYTES / 4];
  hn::Store(x, d, in);
  for (size_t k = 0; k < hn::Lanes(d); ++k)
    out[k] = static_cast<float>(quarter ? std::cos(double{in[k]}) : std::sin(double{in[k]}));
  return hn::IfThenElse(hn::Le(hn::Abs(x), set(48039.0f)), y, hn::Load(d, out));
}
HWY_INLINE VF sin(VF x) { return hn::IfThenElse(hn::Eq(x, set(0.0f)), x, sin_or_cos(x, 0)); }  // of -0: -0
HWY_INLINE VF cos(VF x) { return sin_or_cos(x, 1); }

}  // namespace HWY_NAMESPACE
}  // namespace weft::native
HWY_AFTER_NAMESPACE();
#endif
