#include <array>
#include <optional>

#include "../norm_teams.hpp"
#include "../rotation.hpp"
#include "../skinny.hpp"

// layer_norm and rms_norm. The variance takes a second pass over the row, which is in registers if it fits.
// On multiprocessors with much shared memory, rows of up to 256 KB are for teams (norm_teams.hpp).
namespace weft::cuda {

using namespace backend;

namespace {

template <class L, bool kCentered>
__global__ void __launch_bounds__(L::kThreads)
    norm_of_rows(const typename L::T* x, const typename L::T* weight, const typename L::T* bias,
                 typename L::T* y, int64_t rows, int columns, float epsilon) {
  wait_for_kernels_before();
  let_next_kernel_start();
  each_row<L>(x, rows, columns, [&](int64_t r, const Row<L>& row) {
    const auto count = static_cast<float>(columns);
    float mean = 0, squares = 0;
    if (kCentered) {
      each<L>(columns, [&](At, float v) { mean += v; }, row);
      mean = over_row<L>(mean, Sum()) / count;
    }
    each<L>(columns, [&](At, float v) { squares += (v - mean) * (v - mean); }, row);
    const float scale = 1 / sqrtf(over_row<L>(squares, Sum()) / count + epsilon);
    store<L>(
        y + r * columns, columns, [&](At, float v, float w, float b) { return (v - mean) * scale * w + b; },
        row, SharedRow<L>{weight, 1}, SharedRow<L>{bias, 0});
  });
}

template <bool kCentered>
Support accepts(const OpCall& c) {
  return takes_rows(c.input(0), kCentered ? c.attr("trailing").integer(1) : 1);
}

/// Few rows, and those of heads, are normalized together with what follows them, by sums in other orders.
bool may_join(const OpCall& c) {
  const TypeView x = c.input(0);
  return !wants_equal_bits(c) && (x.rank() == 3 || (x.rank() == 2 && x.dtype() == DType::bf16));
}

Outcome prepare_rms(const OpCall& c, weft_plan& plan) {
  if (may_join(c)) plan.determinism = WEFT_DETERMINISM_ANY;
  return Outcome::ok();
}

template <bool kCentered>
Outcome launch(const Launch& l) {
  const TensorView x = l.input(0), y = l.output(0), weight = l.input(1),
                   bias = kCentered ? l.input(2) : TensorView(nullptr);
  const auto [rows, columns] = row_sizes(x, kCentered ? l.call().attr("trailing").integer(1) : 1);
  if (rows == 0) return Outcome::ok();
  const auto epsilon = static_cast<float>(l.call().attr("epsilon").real(1e-5));
  const bool aligned = aligned_rows(columns, {x, y, weight, bias});
  const bool joins = !kCentered && aligned && may_join(l.call());
  if (joins && x.rank() == 2 && rows <= kNormedRows)
    return collect_norm(l, {x.data<const bf16>(), weight.has() ? weight.data<const bf16>() : nullptr,
                            y.data<bf16>(), static_cast<int>(rows), columns, epsilon});
  if (joins && normalizes_heads(x))
    return with_type(x.dtype(), [&]<class T>(T*) {
      typename Rotation<T>::Piece piece{};
      piece.x = x.data<const T>(), piece.weight = weight.has() ? weight.data<const T>() : nullptr;
      piece.normed = y.data<T>(), piece.epsilon = epsilon;
      piece.n = x.size() / 2, piece.half = columns / 2;
      const std::array reads = {range_of(x), weight.has() ? range_of(weight) : Range{}};
      return collect<Rotation<T>>(l, {}, piece, reads, std::array{range_of(y)});
    });
  return with_type(x.dtype(), [&]<class T>(T*) {
    const auto data = [](TensorView t) { return t.has() ? t.data<const T>() : nullptr; };
    const auto run = [&]<class L>(L*) {
      return start_rows<L>(l, rows, norm_of_rows<L, kCentered>, data(x), data(weight), data(bias),
                           y.data<T>(), rows, columns, epsilon);
    };
    std::optional<Outcome> told;
    const NormPointers<T> all{data(x), data(weight), data(bias), y.data<T>(), is_streamed(y)};
    const auto by_team = [&]<class S>(S*) {
      told = start_teams<S>(l, rows, norm_of_teams<S, kCentered>, all, rows, columns, epsilon);
    };
    if (has_large_shared(l) && aligned && with_norm_team<T>(columns, by_team)) return *std::move(told);
    return with_layout<T, 8>(columns, aligned, run);
  });
}

}  // namespace

std::span<const KernelRecord> norm_rows() {
  static const KernelRecord all[] = {{.op = "layer_norm",
                                      .variant = "rows",
                                      .reads = {"epsilon", "trailing"},
                                      .accepts = accepts<true>,
                                      .launch = launch<true>},
                                     {.op = "rms_norm",
                                      .variant = "rows",
                                      .reads = {"epsilon"},
                                      .accepts = accepts<false>,
                                      .prepare = prepare_rms,
                                      .launch = launch<false>,
                                      .joins = true}};
  return all;
}

}  // namespace weft::cuda
