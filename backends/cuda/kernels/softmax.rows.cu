#include <optional>

#include "../softmax_teams.hpp"

// Softmax of rows and its gradient. Rows that fit into registers are read once: on multiprocessors with much
// shared memory, rows of up to 256 KB are for teams (softmax_teams.hpp).
namespace weft::cuda {

using namespace backend;

namespace {

template <class L>
__global__ void __launch_bounds__(L::kThreads)
    softmax_of_rows(const typename L::T* x, typename L::T* y, int64_t rows, int columns) {
  using T = typename L::T;
  wait_for_kernels_before();
  let_next_kernel_start();
  each_row<L>(x, rows, columns, [&](int64_t r, const Row<L>& row) {
    float most = -INFINITY, sum = 0;
    each<L>(columns, [&](At, float v) { most = fmaxf(most, v); }, row);
    most = over_row<L>(most, Largest());
    each<L>(columns, [&](At, float v) { sum += exp_for<T>(v - most); }, row);
    const float scale = 1 / over_row<L>(sum, Sum());
    store<L>(y + r * columns, columns, [&](At, float v) { return exp_for<T>(v - most) * scale; }, row);
  });
}

// dx = y (dy - sum(y dy))
template <class L>
__global__ void __launch_bounds__(L::kThreads)
    softmax_grad_of_rows(const typename L::T* y, const typename L::T* dy, typename L::T* dx, int64_t rows,
                         int columns) {
  wait_for_kernels_before();
  let_next_kernel_start();
  const int64_t r = row_of_thread<L>();
  if (r >= rows) return;
  const Row<L> own(y + r * columns, columns), given(dy + r * columns, columns);
  float sum = 0;
  each<L>(columns, [&](At, float v, float dv) { sum += v * dv; }, own, given);
  sum = over_row<L>(sum, Sum());
  store<L>(dx + r * columns, columns, [&](At, float v, float dv) { return v * (dv - sum); }, own, given);
}

Support accepts(const OpCall& c) {
  if (auto last = last_axis(c); !last) return last;
  return takes_rows(c.input(0));
}

Outcome softmax(const Launch& l) {
  const TensorView x = l.input(0), y = l.output(0);
  const auto [rows, columns] = row_sizes(x);
  if (rows == 0) return Outcome::ok();
  const bool aligned = aligned_rows(columns, {x, y});
  return with_type(x.dtype(), [&]<class T>(T*) {
    const auto run = [&]<class L>(L*) {
      return start_rows<L>(l, rows, softmax_of_rows<L>, x.data<const T>(), y.data<T>(), rows, columns);
    };
    std::optional<Outcome> told;
    const auto by_team = [&]<class S>(S*) {
      told = start_teams<S>(l, rows, softmax_of_teams<S>, x.data<const T>(), y.data<T>(), is_streamed(y),
                            rows, columns);
    };
    if (has_large_shared(l) && aligned && with_softmax_team<T>(columns, by_team)) return *std::move(told);
    return with_layout<T, 8>(columns, aligned, run);
  });
}

Outcome softmax_grad(const Launch& l) {
  const TensorView y = l.input(0), dy = l.input(1), dx = l.output(0);
  const auto [rows, columns] = row_sizes(y);
  if (rows == 0) return Outcome::ok();
  const bool aligned = aligned_rows(columns, {y, dy, dx});
  return with_type(y.dtype(), [&]<class T>(T*) {
    return with_layout<T, 4>(columns, aligned, [&]<class L>(L*) {
      return start(l, blocks_of_rows<L>(rows), L::kThreads, 0, softmax_grad_of_rows<L>, y.data<const T>(),
                   dy.data<const T>(), dx.data<T>(), rows, columns);
    });
  });
}

}  // namespace

std::span<const KernelRecord> softmax_rows() {
  static const KernelRecord all[] = {
      {.op = "softmax", .variant = "rows", .reads = {"axis"}, .accepts = accepts, .launch = softmax},
      {.op = "softmax_grad",
       .variant = "rows",
       .reads = {"axis"},
       .accepts = accepts,
       .launch = softmax_grad}};
  return all;
}

}  // namespace weft::cuda
