#include <array>
#include <optional>

#include "../collect.hpp"
#include "../rows.hpp"

// What an optimizer does to each of many tensors: conversions, perhaps only under a condition, norms,
// clipping, AdamW. Calls that follow one another are one launch.
namespace weft::cuda {

using namespace backend;

namespace {

/// Neighbouring elements in f32.
template <int n, class T>
__device__ void read(float (&to)[n], const T* at) {
  const auto piece = *reinterpret_cast<const Piece<T, n>*>(at);
#pragma unroll
  for (int i = 0; i < n; ++i) to[i] = widened(piece.of[i]);
}
template <int n, class T>
__device__ void write(T* at, const float (&x)[n]) {
  *reinterpret_cast<Piece<T, n>*>(at) = narrowed_piece<T>(x);
}

/// f<n>(i) for the elements of a block's share, n neighbours at a time where all of these operands are
/// aligned.
template <class F, class... P>
__device__ void each_element(int64_t begin, int64_t end, F f, const P*... operands) {
  constexpr int kWide = 4;
  const auto thread = static_cast<int64_t>(threadIdx.x);
  const bool aligned = ((reinterpret_cast<uintptr_t>(operands) % (kWide * sizeof(P)) == 0) && ...);
  const int64_t pieces = aligned ? (end - begin) / kWide : 0;
#pragma unroll 4
  for (int64_t i = thread; i < pieces; i += 256) f.template operator()<kWide>(begin + i * kWide);
#pragma unroll 4
  for (int64_t i = begin + pieces * kWide + thread; i < end; i += 256) f.template operator()<1>(i);
}

struct Nothing {
  bool operator==(const Nothing&) const = default;
};

// y = x in another type.
template <class From, class To>
struct Conversion {
  struct Piece {
    const From* x;
    To* y;
    int64_t n;
  };
  using Common = Nothing;
  static __device__ void run(const Piece& p, const Common&, int64_t begin, int64_t end) {
    const auto convert = [&]<int n>(int64_t i) {
      float x[n];
      read(x, p.x + i), write(p.y + i, x);
    };
    each_element(begin, end, convert, p.x, p.y);
  }
  static Outcome finish(Queue&, const Pieces<Conversion>&) { return Outcome::ok(); }
};

// y = x in f32, or another number where the condition does not hold: gradients of a loss that is not finite.
template <class From>
struct Guard {
  struct Piece {
    const From* x;
    const bool* condition;
    const float* otherwise;
    float* y;
    int64_t n;
  };
  using Common = Nothing;
  static __device__ void run(const Piece& p, const Common&, int64_t begin, int64_t end) {
    const bool holds = *p.condition;
    const float otherwise = *p.otherwise;
    const auto guard = [&]<int n>(int64_t i) {
      float x[n];
      read(x, p.x + i);
#pragma unroll
      for (int k = 0; k < n; ++k) x[k] = holds ? x[k] : otherwise;
      write(p.y + i, x);
    };
    each_element(begin, end, guard, p.x, p.y);
  }
  static Outcome finish(Queue&, const Pieces<Guard>&) { return Outcome::ok(); }
};

// y = x min(1, most / (norm + epsilon)); a NaN norm counts.
template <class T>
struct Clipping {
  struct Piece {
    const T* x;
    const float* norm;
    T* y;
    int64_t n;
  };
  struct Common {
    float most, epsilon;
    bool operator==(const Common&) const = default;
  };
  static __device__ void run(const Piece& p, const Common& c, int64_t begin, int64_t end) {
    const float wanted = c.most / (*p.norm + c.epsilon), scale = 1 < wanted ? 1 : wanted;
    const auto clip = [&]<int n>(int64_t i) {
      float x[n];
      read(x, p.x + i);
#pragma unroll
      for (int k = 0; k < n; ++k) x[k] *= scale;
      write(p.y + i, x);
    };
    each_element(begin, end, clip, p.x, p.y);
  }
  static Outcome finish(Queue&, const Pieces<Clipping>&) { return Outcome::ok(); }
};

struct AdamW {
  struct Piece {
    float* parameter;
    const float* gradient;
    float *mean, *square;
    const float* rate;
    float *mean_weight, *square_weight;
    int64_t n;
  };
  struct Common {
    float beta1, rest1, beta2, rest2, epsilon, decay;
    bool operator==(const Common&) const = default;
  };
  static __device__ float next_mean_weight(const Piece& p, const Common& c) {
    return *p.mean_weight * c.beta1 + c.rest1;
  }
  static __device__ float next_square_weight(const Piece& p, const Common& c) {
    return *p.square_weight * c.beta2 + c.rest2;
  }
  static __device__ void run(const Piece& p, const Common& c, int64_t begin, int64_t end) {
    const float rate = *p.rate, of_mean = 1 / next_mean_weight(p, c),
                of_square = 1 / next_square_weight(p, c), decay = 1 - rate * c.decay;
    const auto advance = [&]<int n>(int64_t i) {
      float g[n], m[n], v[n], x[n];
      read(g, p.gradient + i), read(m, p.mean + i), read(v, p.square + i), read(x, p.parameter + i);
#pragma unroll
      for (int k = 0; k < n; ++k) {
        m[k] = m[k] * c.beta1 + g[k] * c.rest1, v[k] = v[k] * c.beta2 + g[k] * g[k] * c.rest2;
        x[k] = x[k] * decay - rate * (m[k] * of_mean / (sqrtf(v[k] * of_square) + c.epsilon));
      }
      write(p.mean + i, m), write(p.square + i, v), write(p.parameter + i, x);
    };
    each_element(begin, end, advance, p.gradient, p.mean, p.square, p.parameter);
  }
  static Outcome finish(Queue&, const Pieces<AdamW>&);
};

// All blocks have read the weights of the step before.
__global__ void advance_weights(Pieces<AdamW> pieces) {
  wait_for_kernels_before();
  let_next_kernel_start();
  const int i = static_cast<int>(threadIdx.x);
  if (i >= pieces.n) return;
  const AdamW::Piece& p = pieces.all[i];
  *p.mean_weight = AdamW::next_mean_weight(p, pieces.common);
  *p.square_weight = AdamW::next_square_weight(p, pieces.common);
}

Outcome AdamW::finish(Queue& queue, const Pieces<AdamW>& pieces) {
  return start_on(queue, {1}, 64, 0, advance_weights, pieces);
}
static_assert(most_pieces<AdamW>() <= 64 && sizeof(Pieces<AdamW>) <= 4000);

// The mean of x * x, in f32 until the end: blocks leave their sums to a second kernel.
using BlockRow = Layout<float, 256, 0, 1>;
template <class T>
struct MeanSquare {
  struct Piece {
    const T* x;
    T* y;
    int64_t n;
  };
  struct Common {
    float* partials;
    bool operator==(const Common&) const = default;
  };
  static __device__ void run(const Piece& p, const Common& c, int64_t begin, int64_t end) {
    float sum = 0;
    const auto add = [&]<int n>(int64_t i) {
      float x[n];
      read(x, p.x + i);
#pragma unroll
      for (int k = 0; k < n; ++k) sum += x[k] * x[k];
    };
    each_element(begin, end, add, p.x);
    sum = over_row<BlockRow>(sum, Sum());
    if (threadIdx.x == 0) c.partials[blockIdx.x] = sum;
  }
  static Outcome finish(Queue& queue, const Pieces<MeanSquare>& pieces);
};

template <class T>
__global__ void __launch_bounds__(256) means_of_partials(Pieces<MeanSquare<T>> pieces) {
  wait_for_kernels_before();
  let_next_kernel_start();
  const int i = static_cast<int>(blockIdx.x), end = pieces.first_blocks[i + 1];
  float sum = 0;
#pragma unroll 4
  for (int b = pieces.first_blocks[i] + static_cast<int>(threadIdx.x); b < end; b += 256)
    sum += pieces.common.partials[b];
  sum = over_row<BlockRow>(sum, Sum());
  if (threadIdx.x == 0) *pieces.all[i].y = narrowed<T>(sum / static_cast<float>(pieces.all[i].n));
}

template <class T>
Outcome MeanSquare<T>::finish(Queue& queue, const Pieces<MeanSquare>& pieces) {
  return start_on(queue, {static_cast<unsigned>(pieces.n)}, 256, 0, means_of_partials<T>, pieces);
}

Support float_type(DType type) {
  if (type == DType::f32 || type == DType::f16 || type == DType::bf16) return Support::yes();
  return Support::no("computes on f32, f16 and bf16, got {}", type);
}
Support few_elements(TypeView t) {
  int64_t n = 1;
  for (const int64_t d : t.max()) n *= d;
  return n < int64_t{1} << 40 ? Support::yes() : Support::no("{} elements", n);
}

Support accepts_conversion(const OpCall& c) {
  const int64_t from = c.op() == "assign" ? 1 : 0;
  const DType x = c.input(from).dtype(), y = c.output(0).dtype();
  if (auto s = float_type(x); !s) return s;
  if (auto s = float_type(y); !s) return s;
  if (x == y || (x != DType::f32 && y != DType::f32)) return Support::no("from {} to {}", x, y);
  return few_elements(c.input(from));
}
Outcome convert(const Launch& l) {
  const TensorView from = l.input(l.call().op() == "assign" ? 1 : 0), to = l.output(0);
  const int64_t n = from.size();
  return with_type(from.dtype(), [&]<class From>(From*) {
    return with_type(to.dtype(), [&]<class To>(To*) {
      const auto* x = from.data<const From>();
      auto* y = to.data<To>();
      return collect<Conversion<From, To>>(l, {}, {x, y, n}, std::array{range_of(x, n)},
                                           std::array{range_of(y, n)});
    });
  });
}

/// The inputs of a body that is where(condition, x in f32, otherwise) with two scalars.
struct GuardInputs {
  uint32_t x, condition, otherwise;
};
std::optional<GuardInputs> guard_in(const OpCall& c) {
  const weft_region* body = c.region();
  if (!body || body->n_inputs != 3 || body->n_steps != 2 || c.n_outputs() != 1) return {};
  const weft_step &cast = *body->steps[0], &where = *body->steps[1];
  if (OpCall(cast.call).op() != "cast" || OpCall(where.call).op() != "where") return {};
  const GuardInputs in{cast.inputs[0], where.inputs[0], where.inputs[2]};
  const bool chained = where.inputs[1] == cast.outputs[0] && body->outputs[0] == where.outputs[0];
  if (!chained || in.x >= 3 || in.condition >= 3 || in.otherwise >= 3) return {};
  return in;
}
Support accepts_guard(const OpCall& c) {
  const auto in = guard_in(c);
  if (!in) return Support::no("the body is no conversion under a condition");
  const auto x = c.input(in->x), condition = c.input(in->condition), otherwise = c.input(in->otherwise);
  if (x.dtype() != DType::f16 && x.dtype() != DType::bf16)
    return Support::no("converts f16 and bf16, got {}", x.dtype());
  if (c.output(0).dtype() != DType::f32 || !std::ranges::equal(x.max(), c.output(0).max()))
    return Support::no("the result must be f32 of the operand's shape");
  if (condition.rank() != 0 || otherwise.rank() != 0) return Support::no("wants scalars beside the operand");
  return few_elements(x);
}
Outcome guard(const Launch& l) {
  const GuardInputs in = *guard_in(l.call());
  const TensorView from = l.input(in.x), to = l.output(0);
  const int64_t n = from.size();
  const auto* condition = l.input(in.condition).data<const bool>();
  const auto* otherwise = l.input(in.otherwise).data<const float>();
  return with_type(from.dtype(), [&]<class From>(From*) {
    const auto* x = from.data<const From>();
    auto* y = to.data<float>();
    return collect<Guard<From>>(l, {}, {x, condition, otherwise, y, n},
                                std::array{range_of(x, n), range_of(condition, 1), range_of(otherwise, 1)},
                                std::array{range_of(y, n)});
  });
}

Support accepts_clipping(const OpCall& c) {
  if (c.updates() != 0 && c.raw()->update_inputs[0] != 0) return Support::no("can only write over input 0");
  if (auto s = float_type(c.input(0).dtype()); !s) return s;
  return few_elements(c.input(0));
}
Outcome clip(const Launch& l) {
  const TensorView x = l.input(0), y = l.output(0);
  const int64_t n = x.size();
  const auto* norm = l.input(1).data<const float>();
  const auto number = [&](const char* name, double missing) {
    return static_cast<float>(l.call().attr(name).real(missing));
  };
  return with_type(x.dtype(), [&]<class T>(T*) {
    return collect<Clipping<T>>(l, {number("max_norm", 1), number("epsilon", 1e-6)},
                                {x.data<const T>(), norm, y.data<T>(), n},
                                std::array{range_of(x.data<const T>(), n), range_of(norm, 1)},
                                std::array{range_of(y.data<const T>(), n)});
  });
}

Support accepts_mean_square(const OpCall& c) {
  if (auto s = float_type(c.input(0).dtype()); !s) return s;
  int64_t n = 1;
  for (const int64_t d : c.input(0).max()) n *= d;
  return blocks_of(n) <= kPartials ? Support::yes() : Support::no("{} elements", n);
}
Outcome mean_square(const Launch& l) {
  const TensorView x = l.input(0), y = l.output(0);
  const int64_t n = x.size();
  return with_type(x.dtype(), [&]<class T>(T*) {
    const auto* from = x.data<const T>();
    auto* to = y.data<T>();
    return collect<MeanSquare<T>>(l, {queue_of(l).partials}, {from, to, n}, std::array{range_of(from, n)},
                                  std::array{range_of(to, 1)});
  });
}

Support accepts_adamw(const OpCall& c) {
  for (int64_t i = 0; i < 7; ++i)
    if (c.input(i).dtype() != DType::f32) return Support::no("computes on f32, got {}", c.input(i).dtype());
  constexpr std::array<uint32_t, 5> over = {0, 2, 3, 5, 6};
  if (c.updates() != 0b11111 || !std::equal(over.begin(), over.end(), c.raw()->update_inputs))
    return Support::no("every result must be written over its operand");
  return few_elements(c.input(0));
}
Outcome adamw(const Launch& l) {
  const auto number = [&](const char* name, double missing) { return l.call().attr(name).real(missing); };
  const double beta1 = number("beta1", 0.9), beta2 = number("beta2", 0.999);
  const AdamW::Common common{static_cast<float>(beta1),
                             static_cast<float>(1 - beta1),
                             static_cast<float>(beta2),
                             static_cast<float>(1 - beta2),
                             static_cast<float>(number("epsilon", 1e-8)),
                             static_cast<float>(number("weight_decay", 0.01))};
  const auto out = [&](int64_t i) { return l.output(i).data<float>(); };
  const auto *gradient = l.input(1).data<const float>(), *rate = l.input(4).data<const float>();
  const int64_t n = l.input(0).size();
  return collect<AdamW>(l, common, {out(0), gradient, out(1), out(2), rate, out(3), out(4), n},
                        std::array{range_of(gradient, n), range_of(rate, 1)},
                        std::array{range_of(out(0), n), range_of(out(1), n), range_of(out(2), n),
                                   range_of(out(3), 1), range_of(out(4), 1)});
}

}  // namespace

std::span<const KernelRecord> optimizer_pieces() {
  static const KernelRecord all[] = {
      {.op = "adamw_step",
       .variant = "pieces",
       .reads = {"beta1", "beta2", "epsilon", "weight_decay"},
       .accepts = accepts_adamw,
       .launch = adamw,
       .in_place = true},
      {.op = "global_norm_clip",
       .variant = "pieces",
       .reads = {"max_norm", "epsilon"},
       .accepts = accepts_clipping,
       .launch = clip,
       .in_place = true},
      {.op = "mean_square", .variant = "pieces", .accepts = accepts_mean_square, .launch = mean_square},
      {.op = "cast",
       .variant = "pieces",
       .reads = {"dtype"},
       .accepts = accepts_conversion,
       .launch = convert},
      {.op = "region", .variant = "guards", .accepts = accepts_guard, .launch = guard, .rank = 1},
      {.op = "assign",
       .variant = "pieces",
       .accepts = accepts_conversion,
       .launch = convert,
       .in_place = true}};
  return all;
}

}  // namespace weft::cuda
