#include <array>
#include <optional>

#include "../update.hpp"

// What is done to each of many gradients and parameters: conversions, perhaps only under a condition, and
// norms. Calls of one kind are one launch.
namespace weft::cuda {

using namespace backend;

namespace {

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
};

// The mean of x * x, in f32 until the end: blocks leave their sums to the last of them.
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
  static __device__ void end(const Pieces<MeanSquare>& pieces, int i) {
    const int end = pieces.first_blocks[i + 1];
    float sum = 0;
#pragma unroll 4
    for (int b = pieces.first_blocks[i] + static_cast<int>(threadIdx.x); b < end; b += 256)
      sum += load_shared_by_blocks(pieces.common.partials + b);
    sum = over_row<BlockRow>(sum, Sum());
    if (threadIdx.x == 0) *pieces.all[i].y = narrowed<T>(sum / static_cast<float>(pieces.all[i].n));
  }
};

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
      if constexpr (std::is_same_v<From, float>)
        if (copied_by_update(queue_of(l), x, y, n)) return Outcome::ok();
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

}  // namespace

std::span<const KernelRecord> optimizer_pieces() {
  static const KernelRecord all[] = {
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
