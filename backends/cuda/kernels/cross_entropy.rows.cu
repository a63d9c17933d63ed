#include "../kernels.hpp"
#include "../rows.hpp"

// The mean loss of rows of logits with a class each, and its gradient, each from one reading of rows that
// fit into registers. A class outside the row gives a loss of NaN, and adds nothing to the gradient.
namespace weft::cuda {

using namespace backend;

namespace {

constexpr int kMeanThreads = 1024;
using OneRow = Layout<float, kMeanThreads, 0, 1>;  // all rows' numbers as one row

struct Classes {
  const void* of_rows;
  bool wide;  // 64-bit
  int64_t ignored;

  __device__ int64_t of(int64_t row) const {
    return wide ? static_cast<const int64_t*>(of_rows)[row] : static_cast<const int32_t*>(of_rows)[row];
  }
};

struct RowExps {
  float most, sum;
};
/// The largest x, and the sum of exp(x - most).
template <class L>
__device__ RowExps exps_of(const Row<L>& row) {
  RowExps e{-INFINITY, 0};
  each<L>(row.columns, [&](At, float v) { e.most = fmaxf(e.most, v); }, row);
  e.most = over_row<L>(e.most, Largest());
  each<L>(row.columns, [&](At, float v) { e.sum += expf(v - e.most); }, row);
  e.sum = over_row<L>(e.sum, Sum());
  return e;
}

template <class L>
__global__ void __launch_bounds__(L::kThreads)
    losses_of_rows(const typename L::T* x, Classes classes, float* losses, int64_t rows, int columns) {
  wait_for_kernels_before();
  let_next_kernel_start();
  const int64_t r = row_of_thread<L>();
  if (r >= rows) return;  // with all threads of the row
  const int64_t target = classes.of(r);
  const bool first = threadIdx.x % L::kOfRow == 0;
  if (target == classes.ignored) {
    if (first) losses[r] = 0;
    return;
  }
  const RowExps e = exps_of(Row<L>(x + r * columns, columns));
  if (!first) return;
  const bool known = target >= 0 && target < columns;
  losses[r] = known ? logf(e.sum) - (widened(x[r * columns + target]) - e.most) : NAN;
}

/// How many rows count, in every thread.
__device__ float rows_that_count(const Classes& classes, int64_t rows) {
  float n = 0;
  for (int64_t r = threadIdx.x; r < rows; r += kMeanThreads) n += classes.of(r) != classes.ignored;
  return over_row<OneRow>(n, Sum());
}

template <class T>
__global__ void __launch_bounds__(kMeanThreads)
    mean_of_losses(const float* losses, Classes classes, T* loss, int64_t rows) {
  wait_for_kernels_before();
  let_next_kernel_start();
  float sum = 0;
#pragma unroll 4
  for (int64_t r = threadIdx.x; r < rows; r += kMeanThreads) sum += losses[r];
  sum = over_row<OneRow>(sum, Sum());
  const float n = rows_that_count(classes, rows);
  if (threadIdx.x == 0) *loss = narrowed<T>(sum / n);
}

template <class T>
__global__ void __launch_bounds__(kMeanThreads)
    share_of_rows(const T* dloss, Classes classes, float* share, int64_t rows) {
  wait_for_kernels_before();
  let_next_kernel_start();
  const float n = rows_that_count(classes, rows);
  if (threadIdx.x == 0) *share = widened(*dloss) / n;
}

template <class L>
__global__ void __launch_bounds__(L::kThreads)
    gradients_of_rows(const typename L::T* x, Classes classes, const float* share, typename L::T* dx,
                      int64_t rows, int columns) {
  wait_for_kernels_before();
  let_next_kernel_start();
  const int64_t r = row_of_thread<L>();
  if (r >= rows) return;
  const int64_t target = classes.of(r);
  const Row<L> row(x + r * columns, columns);
  if (target == classes.ignored) {
    store<L>(dx + r * columns, columns, [](At, float) { return 0.0f; }, row);
    return;
  }
  const RowExps e = exps_of(row);
  const float own = *share, scale = own / e.sum;
  store<L>(
      dx + r * columns, columns,
      [&](At c, float v) { return expf(v - e.most) * scale - (c.column == target ? own : 0); }, row);
}

Support accepts(const OpCall& c) {
  const bool grad = c.op() == "cross_entropy_grad";
  if (c.input(grad ? 3 : 2).has()) return Support::no("classes must have no weight");
  const DType target = c.input(1).dtype();
  if (target != DType::i32 && target != DType::i64)
    return Support::no("targets must be i32 or i64, got {}", target);
  if (c.input(0).rank() != 2) return Support::no("logits must have 2 axes, got {}", c.input(0).rank());
  return takes_rows(c.input(0));
}

// A loss for each row; the gradient keeps one number.
Outcome prepare(const OpCall& c, weft_plan& plan) {
  const int64_t rows = c.op() == "cross_entropy_grad" ? 1 : c.input(0).max()[0];
  plan.workspace = static_cast<uint64_t>(std::max<int64_t>(rows, 1)) * sizeof(float);
  return Outcome::ok();
}

Classes classes_of(const Launch& l) {
  const TensorView t = l.input(1);
  return {t.data(), t.dtype() == DType::i64, l.call().attr("ignore_index").integer(-100)};
}

Outcome loss(const Launch& l) {
  const TensorView x = l.input(0);
  const Classes classes = classes_of(l);
  const int64_t rows = x.dim(0);
  const auto columns = static_cast<int>(x.dim(1));
  auto* const losses = l.workspace().data<float>();
  return with_type(x.dtype(), [&]<class T>(T*) {
    if (rows > 0) {
      auto told = with_layout<T, 8>(columns, aligned_rows(columns, {x}), [&]<class L>(L*) {
        return start(l, blocks_of_rows<L>(rows), L::kThreads, 0, losses_of_rows<L>, x.data<const T>(),
                     classes, losses, rows, columns);
      });
      if (!told.good()) return told;
    }
    return start(l, {1}, kMeanThreads, 0, mean_of_losses<T>, losses, classes, l.output(0).data<T>(), rows);
  });
}

Outcome gradient(const Launch& l) {
  const TensorView x = l.input(0), dx = l.output(0);
  const Classes classes = classes_of(l);
  const int64_t rows = x.dim(0);
  const auto columns = static_cast<int>(x.dim(1));
  if (x.size() == 0) return Outcome::ok();
  auto* const share = l.workspace().data<float>();
  return with_type(x.dtype(), [&]<class T>(T*) {
    auto told =
        start(l, {1}, kMeanThreads, 0, share_of_rows<T>, l.input(2).data<const T>(), classes, share, rows);
    if (!told.good()) return told;
    return with_layout<T, 8>(columns, aligned_rows(columns, {x, dx}), [&]<class L>(L*) {
      return start(l, blocks_of_rows<L>(rows), L::kThreads, 0, gradients_of_rows<L>, x.data<const T>(),
                   classes, share, dx.data<T>(), rows, columns);
    });
  });
}

}  // namespace

std::span<const KernelRecord> cross_entropy_rows() {
  static const KernelRecord all[] = {{.op = "cross_entropy",
                                      .variant = "rows",
                                      .reads = {"ignore_index"},
                                      .accepts = accepts,
                                      .prepare = prepare,
                                      .launch = loss},
                                     {.op = "cross_entropy_grad",
                                      .variant = "rows",
                                      .reads = {"ignore_index"},
                                      .accepts = accepts,
                                      .prepare = prepare,
                                      .launch = gradient}};
  return all;
}

}  // namespace weft::cuda
