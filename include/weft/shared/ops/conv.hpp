#pragma once
#include <vector>

#include "weft/shared/numbers.hpp"
#include "weft/shared/walk.hpp"

// conv conv_transpose conv_weight_grad: one sum over
//
//   x[n, group, c, i...] w[group, o, c, k...] y[n, group, o, p...]   with i = p * stride + k * dilation -
//   before
//
// of which one factor is the result. Along each axis a table says which places of the two operands meet in a
// place of the result, so the sum itself does not know which of the three it is. In double.
namespace weft::shared {

namespace detail {

enum ConvRole { kConvX, kConvW, kConvY };
inline constexpr int kSpatial = 3;

/// Places of the operands a and b along one axis, for each place of the result.
using Taps = std::vector<std::vector<std::array<int64_t, 2>>>;

/// The sum with the operands `a` and `b` and the result in these roles.
class Convolution {
 public:
  Convolution(const Launch& l, ConvRole a, ConvRole b, ConvRole result)
      : a_(l.input(0)), b_(l.input(1)), y_(l.output(0)) {
    const TensorView by_role[] = {role(kConvX, a, b), role(kConvW, a, b), role(kConvY, a, b)};
    const TensorView x = by_role[kConvX], w = by_role[kConvW], y = by_role[kConvY];
    const int64_t groups = l.call().attr("groups").integer(1);
    const int64_t c = w.dim(1), o = w.dim(0) / groups;
    const int64_t spatial[] = {inner(x), inner(w), inner(y)};
    // Steps along n, group, o and c; 0 where a factor does not have that axis.
    const std::array<int64_t, 4> steps[] = {
        {groups * c * spatial[kConvX], c * spatial[kConvX], 0, spatial[kConvX]},
        {0, o * c * spatial[kConvW], c * spatial[kConvW], spatial[kConvW]},
        {groups * o * spatial[kConvY], o * spatial[kConvY], spatial[kConvY], 0}};
    const std::array<int64_t, 4> sizes = {x.dim(0), groups, o, c};
    const int summed = result == kConvX ? 2 : result == kConvW ? 0 : 3;
    int kept = 0;
    for (int d = 0; d < 4; ++d) {
      const Axis axis = {sizes[d], steps[a][d], steps[b][d]};
      (d == summed ? sum_ : outer_[kept++]) = axis;
    }
    const int rank = static_cast<int>(x.rank()) - 2, missing = kSpatial - rank;
    for (int d = 0; d < kSpatial; ++d) {
      const bool there = d >= missing;
      const auto size = [&](ConvRole r) { return there ? by_role[r].dim(2 + d - missing) : 1; };
      const std::array<int64_t, 3> all = {size(kConvX), size(kConvW), size(kConvY)};
      taps_[d] = there ? taps(l.call(), d - missing, all, a, b, result) : Taps{{{0, 0}}};
      a_size_[d] = all[a], b_size_[d] = all[b];
    }
  }

  void run(const Launch& l) const {
    visit<Kinds::floats>(y_.dtype(), [&]<class T>(Tag<T>) {
      const int64_t each = y_.size() == 0 ? 0 : inner(y_);
      l.host().parallel_for(y_.size() == 0 ? 0 : y_.size() / each, grain_for(each * sum_.size),
                            [&](int64_t begin, int64_t end) {
                              for (int64_t i = begin; i < end; ++i) block<T>(i, y_.data<T>() + i * each);
                            });
    });
  }

 private:
  struct Axis {
    int64_t size = 1, a = 0, b = 0;
  };

  TensorView role(ConvRole wanted, ConvRole a, ConvRole b) const {
    return wanted == a ? a_ : wanted == b ? b_ : y_;
  }
  static int64_t inner(TensorView t) { return product(t.dims().subspan(2)); }

  static Taps taps(const OpCall& c, int d, const std::array<int64_t, 3>& size, ConvRole a, ConvRole b,
                   ConvRole result) {
    const auto listed = [&](const char* name, int i, int64_t otherwise) {
      const auto list = c.attr(name).ints();
      return list.empty() ? otherwise : list[i];
    };
    const int64_t stride = listed("stride", d, 1), dilation = listed("dilation", d, 1),
                  before = listed("padding", 2 * d, 0);
    Taps all(size[result]);
    for (int64_t p = 0; p < size[kConvY]; ++p)
      for (int64_t k = 0; k < size[kConvW]; ++k) {
        const int64_t i = p * stride + k * dilation - before;
        if (i < 0 || i >= size[kConvX]) continue;
        const int64_t place[] = {i, k, p};
        all[place[result]].push_back({place[a], place[b]});
      }
    return all;
  }

  /// All spatial places of one channel of the result.
  template <class T>
  void block(int64_t outer, T* to) const {
    const T *a = a_.data<T>(), *b = b_.data<T>();
    for (int d = 2; d >= 0; --d) {
      const int64_t at = outer % outer_[d].size;
      a += at * outer_[d].a, b += at * outer_[d].b, outer /= outer_[d].size;
    }
    for (const auto& t0 : taps_[0])
      for (const auto& t1 : taps_[1])
        for (const auto& t2 : taps_[2]) {
          double total = 0;
          for (int64_t s = 0; s < sum_.size; ++s)
            for (const auto [a0, b0] : t0)
              for (const auto [a1, b1] : t1)
                for (const auto [a2, b2] : t2)
                  total += load(a[s * sum_.a + (a0 * a_size_[1] + a1) * a_size_[2] + a2]) *
                           load(b[s * sum_.b + (b0 * b_size_[1] + b1) * b_size_[2] + b2]);
          *to++ = store<T>(total);
        }
  }

  TensorView a_, b_, y_;
  Axis outer_[3], sum_;  // of n, group, o, c: those of the result in order, and the one that is summed
  Taps taps_[kSpatial];
  int64_t a_size_[kSpatial], b_size_[kSpatial];
};

inline Support accepts_conv(const OpCall& c) {
  if (auto s = arity(c, 2, 1); !s) return s;
  const TypeView a = c.input(0), b = c.input(1), y = c.output(0);
  if (!includes(Kinds::floats, a.dtype()))
    return Support::no("dtype must be {}, got {}", name(Kinds::floats), a.dtype());
  if (auto s = same_dtype(a, b); !s) return s;
  if (auto s = same_dtype(a, y); !s) return s;
  if (a.rank() < 3 || a.rank() > 2 + kSpatial || b.rank() != a.rank() || y.rank() != a.rank())
    return Support::no("ranks must be the same and 3 to {}, got {}, {} and {}", 2 + kSpatial, a.rank(),
                       b.rank(), y.rank());
  return Support::yes();
}

template <ConvRole a, ConvRole b, ConvRole result>
Outcome launch_conv(const Launch& l) {
  Convolution(l, a, b, result).run(l);
  return Outcome::ok();
}
}  // namespace detail

/// conv(x, w), conv_transpose(y, w) and conv_weight_grad(x, y): one, two or three spatial axes, groups.
inline std::array<KernelRecord, 3> conv_records() {
  using enum detail::ConvRole;
  return {KernelRecord{.op = "conv",
                       .variant = "shared",
                       .reads = {"dilation", "groups", "padding", "stride"},
                       .accepts = detail::accepts_conv,
                       .launch = detail::launch_conv<kConvX, kConvW, kConvY>},
          {.op = "conv_transpose",
           .variant = "shared",
           .reads = {"dilation", "groups", "output_padding", "padding", "stride"},
           .accepts = detail::accepts_conv,
           .launch = detail::launch_conv<kConvY, kConvW, kConvX>},
          {.op = "conv_weight_grad",
           .variant = "shared",
           .reads = {"dilation", "groups", "kernel", "padding", "stride"},
           .accepts = detail::accepts_conv,
           .launch = detail::launch_conv<kConvX, kConvY, kConvW>}};
}

}  // namespace weft::shared
