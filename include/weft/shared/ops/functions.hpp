#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

// The scalar functions of elementwise ops, on the three wide types of numbers.hpp. Signed arithmetic goes
// through uint64_t, where it wraps around.
namespace weft::shared::fn {

struct Add {
  double operator()(double a, double b) const { return a + b; }
  uint64_t operator()(uint64_t a, uint64_t b) const { return a + b; }
  int64_t operator()(int64_t a, int64_t b) const { return static_cast<int64_t>(uint64_t(a) + uint64_t(b)); }
};
struct Sub {
  double operator()(double a, double b) const { return a - b; }
  uint64_t operator()(uint64_t a, uint64_t b) const { return a - b; }
  int64_t operator()(int64_t a, int64_t b) const { return static_cast<int64_t>(uint64_t(a) - uint64_t(b)); }
};
struct Mul {
  double operator()(double a, double b) const { return a * b; }
  uint64_t operator()(uint64_t a, uint64_t b) const { return a * b; }
  int64_t operator()(int64_t a, int64_t b) const { return static_cast<int64_t>(uint64_t(a) * uint64_t(b)); }
};
struct Div {
  double operator()(double a, double b) const { return a / b; }
  uint64_t operator()(uint64_t a, uint64_t b) const { return b == 0 ? 0 : a / b; }
  int64_t operator()(int64_t a, int64_t b) const {
    if (b == -1) return static_cast<int64_t>(0 - uint64_t(a));  // the least value over -1 would trap
    return b == 0 ? 0 : a / b;
  }
};
/// Remainder with the sign of the divisor, as Python's %.
struct Mod {
  double operator()(double a, double b) const {
    const double r = std::fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
  }
  uint64_t operator()(uint64_t a, uint64_t b) const { return b == 0 ? 0 : a % b; }
  int64_t operator()(int64_t a, int64_t b) const {
    if (b == 0 || b == -1) return 0;  // the least value over -1 would trap
    const int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
  }
};
struct Power {
  double operator()(double a, double b) const { return std::pow(a, b); }
};
/// A NaN on either side wins.
struct Maximum {
  template <class W>
  W operator()(W a, W b) const {
    return a > b || a != a ? a : b;
  }
};
struct Minimum {
  template <class W>
  W operator()(W a, W b) const {
    return a < b || a != a ? a : b;
  }
};

struct BitAnd {
  template <class W>
  W operator()(W a, W b) const {
    return a & b;
  }
};
struct BitOr {
  template <class W>
  W operator()(W a, W b) const {
    return a | b;
  }
};
struct BitXor {
  template <class W>
  W operator()(W a, W b) const {
    return a ^ b;
  }
};
// A narrower integer stands here in 64 bits: what is shifted out of its own width is cut off when it is
// stored, and an amount outside [0, 64), seen as unsigned, shifts everything out.
struct ShiftLeft {
  template <class W>
  W operator()(W a, W amount) const {
    return uint64_t(amount) < 64 ? static_cast<W>(uint64_t(a) << uint64_t(amount)) : W{0};
  }
};
struct ShiftRight {
  uint64_t operator()(uint64_t a, uint64_t amount) const { return amount < 64 ? a >> amount : 0; }
  int64_t operator()(int64_t a, int64_t amount) const {
    return a >> std::min<uint64_t>(uint64_t(amount), 63);
  }
};

struct Less {
  template <class W>
  bool operator()(W a, W b) const {
    return a < b;
  }
};
struct Equal {
  template <class W>
  bool operator()(W a, W b) const {
    return a == b;
  }
};
struct Exp {
  double operator()(double x) const { return std::exp(x); }
};
struct Log {
  double operator()(double x) const { return std::log(x); }
};
struct Log1p {
  double operator()(double x) const { return std::log1p(x); }
};
struct Sqrt {
  double operator()(double x) const { return std::sqrt(x); }
};
struct Sin {
  double operator()(double x) const { return std::sin(x); }
};
struct Cos {
  double operator()(double x) const { return std::cos(x); }
};
struct Tanh {
  double operator()(double x) const { return std::tanh(x); }
};
struct Erf {
  double operator()(double x) const { return std::erf(x); }
};
struct Floor {
  double operator()(double x) const { return std::floor(x); }
};
/// To nearest, ties to even: the rounding mode of every thread here.
struct Round {
  double operator()(double x) const { return std::nearbyint(x); }
};

}  // namespace weft::shared::fn
