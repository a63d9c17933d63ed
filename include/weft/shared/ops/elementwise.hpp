#pragma once
#include <array>

#include "weft/shared/numbers.hpp"
#include "weft/shared/ops/functions.hpp"
#include "weft/shared/walk.hpp"

// Ops that make each element of the result from one element of every operand.
namespace weft::shared {

namespace detail {

/// y[i] = f(a, b, y[i]) for a run of elements; the strides of a and b are 0 or 1 except in rare broadcasts.
/// What is compiled for every dtype and function is this alone, so that static programs are small.
using BinaryRun = void (*)(const void* a, int64_t sa, const void* b, int64_t sb, void* y, int64_t n);

template <class A, class Y, class F>
void binary_run(const void* from_a, int64_t sa, const void* from_b, int64_t sb, void* to, int64_t n) {
  const A *a = static_cast<const A*>(from_a), *b = static_cast<const A*>(from_b);
  Y* y = static_cast<Y*>(to);
  for (int64_t i = 0; i < n; ++i) y[i] = F{}(a[i * sa], b[i * sb], y[i]);
}

inline Outcome binary(const Launch& l, BinaryRun run) {
  const TensorView a = l.input(0), b = l.input(1), y = l.output(0);
  const auto bytes_a = static_cast<int64_t>(byte_size(a.dtype())),
             bytes_y = static_cast<int64_t>(byte_size(y.dtype()));
  const Walk<2> walk(y.dims(), {a.dims(), b.dims()});
  l.host().parallel_for(walk.total(), kGrain, [&](int64_t begin, int64_t end) {
    walk.run(begin, end, [&](int64_t out, const auto& at, int64_t n) {
      run(a.data() + at[0] * bytes_a, walk.stride(0), b.data() + at[1] * bytes_a, walk.stride(1),
          y.data() + out * bytes_y, n);
    });
  });
  return Outcome::ok();
}

/// f of one element of each operand, in the elements' own type.
template <class F, class T>
struct Plain {
  T operator()(T a, T b, T) const { return store<T>(F{}(load(a), load(b))); }
};
template <class F, class T>
struct Added {
  T operator()(T a, T b, T y) const {
    const T result = store<T>(F{}(load(a), load(b)));  // rounded as it would be alone
    return store<T>(fn::Add{}(load(y), load(result)));
  }
};
template <class F, class T>
struct Compared {
  Bool operator()(T a, T b, Bool) const { return store<Bool>(uint64_t{F{}(load(a), load(b))}); }
};

inline Support accepts_binary(const OpCall& c, Kinds kinds) {
  if (auto s = arity(c, 2, 1); !s) return s;
  if (!includes(kinds, c.input(0).dtype()))
    return Support::no("dtype must be {}, got {}", name(kinds), c.input(0).dtype());
  if (auto s = same_dtype(c.input(0), c.input(1)); !s) return s;
  for (int64_t i = 0; i < 2; ++i) {
    if (auto s = broadcasts(c.input(i), c.output(0)); !s) return s;
  }
  return Support::yes();
}

/// y = a . b in one dtype.
template <class F, Kinds kinds = Kinds::numbers>
KernelRecord binary_record(const char* op, uint32_t determinism = WEFT_DETERMINISM_DEVICES) {
  return {.op = op,
          .variant = "shared",
          .accepts = [](const OpCall& c) -> Support {
            if (auto s = accepts_binary(c, kinds); !s) return s;
            return same_dtype(c.input(0), c.output(0));
          },
          .launch = [](const Launch& l) -> Outcome {
            return binary(l, visit<kinds>(l.input(0).dtype(), []<class T>(Tag<T>) -> BinaryRun {
                            return binary_run<T, T, Plain<F, T>>;
                          }));
          },
          .determinism = determinism,
          .in_place = true};
}

/// The same, and can add to what is there.
template <class F>
KernelRecord arithmetic_record(const char* op) {
  KernelRecord record = binary_record<F>(op);
  record.launch = [](const Launch& l) -> Outcome {
    const bool accumulates = l.call().accumulates(0);
    return binary(l, visit<Kinds::numbers>(l.input(0).dtype(), [&]<class T>(Tag<T>) -> BinaryRun {
                    return accumulates ? binary_run<T, T, Added<F, T>> : binary_run<T, T, Plain<F, T>>;
                  }));
  };
  record.accumulates = true;
  return record;
}

template <class F>
KernelRecord comparison_record(const char* op) {
  return {.op = op,
          .variant = "shared",
          .accepts = [](const OpCall& c) -> Support {
            if (auto s = accepts_binary(c, Kinds::compute); !s) return s;
            if (c.output(0).dtype() == DType::boolean) return Support::yes();
            return Support::no("the result must be bool, got {}", c.output(0).dtype());
          },
          .launch = [](const Launch& l) -> Outcome {
            return binary(l, visit<Kinds::compute>(l.input(0).dtype(), []<class T>(Tag<T>) -> BinaryRun {
                            return binary_run<T, Bool, Compared<F, T>>;
                          }));
          },
          .determinism = WEFT_DETERMINISM_DEVICES,
          .in_place = true};
}

using UnaryRun = void (*)(const char* x, char* y, int64_t begin, int64_t end);

template <class F, class T>
void unary_run(const char* x, char* y, int64_t begin, int64_t end) {
  const T* from = reinterpret_cast<const T*>(x);
  for (int64_t i = begin; i < end; ++i) reinterpret_cast<T*>(y)[i] = store<T>(F{}(load(from[i])));
}

inline Outcome unary(const Launch& l, UnaryRun run) {
  const TensorView x = l.input(0), y = l.output(0);
  l.host().parallel_for(y.size(), kGrain / 8,
                        [&](int64_t begin, int64_t end) { run(x.data(), y.data(), begin, end); });
  return Outcome::ok();
}

template <class F>
KernelRecord unary_record(const char* op, uint32_t determinism) {
  return {.op = op,
          .variant = "shared",
          .accepts = [](const OpCall& c) -> Support {
            if (auto s = arity(c, 1, 1); !s) return s;
            if (!includes(Kinds::floats, c.input(0).dtype()))
              return Support::no("dtype must be {}, got {}", name(Kinds::floats), c.input(0).dtype());
            return same_dtype(c.input(0), c.output(0));
          },
          .launch = [](const Launch& l) -> Outcome {
            return unary(l, visit<Kinds::floats>(l.input(0).dtype(), []<class T>(Tag<T>) -> UnaryRun {
                           return unary_run<F, T>;
                         }));
          },
          .determinism = determinism,
          .in_place = true};
}

inline Support accepts_where(const OpCall& c) {
  if (auto s = arity(c, 3, 1); !s) return s;
  if (c.input(0).dtype() != DType::boolean)
    return Support::no("the condition must be bool, got {}", c.input(0).dtype());
  for (int64_t i = 0; i < 3; ++i)
    if (auto s = broadcasts(c.input(i), c.output(0)); !s) return s;
  if (auto s = same_dtype(c.input(1), c.input(2)); !s) return s;
  return same_dtype(c.input(1), c.output(0));
}

inline Outcome launch_where(const Launch& l) {
  const TensorView condition = l.input(0), a = l.input(1), b = l.input(2), y = l.output(0);
  const Walk<3> walk(y.dims(), {condition.dims(), a.dims(), b.dims()});
  visit_size(y.dtype(), [&]<class T>(Tag<T>) {
    l.host().parallel_for(walk.total(), kGrain, [&](int64_t begin, int64_t end) {
      walk.run(begin, end, [&](int64_t out, const auto& at, int64_t n) {
        const Bool* from = condition.data<Bool>() + at[0];
        for (int64_t i = 0; i < n; ++i)
          y.data<T>()[out + i] = load(from[i * walk.stride(0)]) != 0
                                     ? a.data<T>()[at[1] + i * walk.stride(1)]
                                     : b.data<T>()[at[2] + i * walk.stride(2)];
      });
    });
  });
  return Outcome::ok();
}
}  // namespace detail

/// y = a . b with NumPy's broadcasting: integers wrap around, and x / 0 = x mod 0 = 0 for them.
inline std::array<KernelRecord, 13> binary_records() {
  using namespace detail;
  return {arithmetic_record<fn::Add>("add"),
          arithmetic_record<fn::Sub>("sub"),
          arithmetic_record<fn::Mul>("mul"),
          arithmetic_record<fn::Div>("div"),
          binary_record<fn::Mod>("mod"),
          binary_record<fn::Power, Kinds::floats>("power", WEFT_DETERMINISM_THREADS),
          binary_record<fn::Maximum>("maximum"),
          binary_record<fn::Minimum>("minimum"),
          binary_record<fn::BitAnd, Kinds::bits>("bit_and"),
          binary_record<fn::BitOr, Kinds::bits>("bit_or"),
          binary_record<fn::BitXor, Kinds::bits>("bit_xor"),
          binary_record<fn::ShiftLeft, Kinds::integers>("shift_left"),
          binary_record<fn::ShiftRight, Kinds::integers>("shift_right")};
}

/// Functions of one float, in double. Most are the C library's: the last bit may differ from machine to
/// machine.
inline std::array<KernelRecord, 10> function_records() {
  using detail::unary_record;
  return {unary_record<fn::Exp>("exp", WEFT_DETERMINISM_THREADS),
          unary_record<fn::Log>("log", WEFT_DETERMINISM_THREADS),
          unary_record<fn::Log1p>("log1p", WEFT_DETERMINISM_THREADS),
          unary_record<fn::Sin>("sin", WEFT_DETERMINISM_THREADS),
          unary_record<fn::Cos>("cos", WEFT_DETERMINISM_THREADS),
          unary_record<fn::Tanh>("tanh", WEFT_DETERMINISM_THREADS),
          unary_record<fn::Erf>("erf", WEFT_DETERMINISM_THREADS),
          unary_record<fn::Sqrt>("sqrt", WEFT_DETERMINISM_DEVICES),
          unary_record<fn::Floor>("floor", WEFT_DETERMINISM_DEVICES),
          unary_record<fn::Round>("round", WEFT_DETERMINISM_DEVICES)};
}

/// less equal: into bool. where: condition ? a : b.
inline std::array<KernelRecord, 3> choice_records() {
  return {detail::comparison_record<fn::Less>("less"),
          detail::comparison_record<fn::Equal>("equal"),
          {.op = "where",
           .variant = "shared",
           .accepts = detail::accepts_where,
           .launch = detail::launch_where,
           .determinism = WEFT_DETERMINISM_DEVICES,
           .in_place = true}};
}

}  // namespace weft::shared
