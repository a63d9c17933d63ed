#include <bit>

#include "../loss_kernel.hpp"

// The mean loss of rows of logits with a class each, or the sum, its gradient, and both in one. For the
// gradient, short rows that are aligned stay in registers; long ones are read once if shared memory keeps
// them. A class outside the row gives a loss of NaN, and adds nothing to the gradient.
namespace weft::cuda {

using namespace backend;

namespace {

constexpr int kMeanThreads = 1024;
using OneRow = Layout<float, kMeanThreads, 0, 1>;  // all rows' numbers as one row

/// Adds up the losses of all rows, and how many rows count: in every thread. Loads of many rows at once,
/// since nothing else of the GPU works meanwhile.
struct LossSum {
  float losses = 0, rows = 0;

  template <class Target>
  __device__ void add(const float* of_rows, const Target* targets, int64_t ignored, int64_t n) {
#pragma unroll 8
    for (int64_t r = threadIdx.x; r < n; r += kMeanThreads) {
      if (of_rows) losses += of_rows[r];
      rows += int64_t{targets[r]} != ignored;
    }
  }
  __device__ LossSum(const float* of_rows, const Classes& classes, int64_t n) {
    if (classes.wide)
      add(of_rows, static_cast<const int64_t*>(classes.of_rows), classes.ignored, n);
    else
      add(of_rows, static_cast<const int32_t*>(classes.of_rows), classes.ignored, n);
    losses = of_rows ? over_row<OneRow>(losses, Sum()) : 0;
    rows = classes.summed ? 1 : over_row<OneRow>(rows, Sum());
  }
};

template <class T>
__global__ void __launch_bounds__(kMeanThreads)
    loss_of_rows(const float* losses, Classes classes, T* loss, int64_t rows) {
  wait_for_kernels_before();
  let_next_kernel_start();
  const LossSum sum(losses, classes, rows);
  if (threadIdx.x == 0) *loss = narrowed<T>(sum.losses / sum.rows);
}

template <class T>
__global__ void __launch_bounds__(kMeanThreads)
    share_of_rows(const T* dloss, Classes classes, float* share, int64_t rows) {
  wait_for_kernels_before();
  let_next_kernel_start();
  const LossSum sum(nullptr, classes, rows);
  if (threadIdx.x == 0) *share = widened(*dloss) / sum.rows;
}

// dx may be x. `losses`: where each row's goes, null where none is wanted. kKeeps: rows are in shared memory
// between the two passes.
template <class L, bool kKeeps>
__global__ void __launch_bounds__(L::kThreads)
    gradients_of_long_rows(const typename L::T* x, Classes classes, const float* share, typename L::T* dx,
                           float* losses, int columns) {
  wait_for_kernels_before();
  let_next_kernel_start();
  using T = typename L::T;
  using P = typename L::P;
  const int64_t r = blockIdx.x, target = classes.of(r);
  const L row(x + r * columns, columns);
  T* const to = dx + r * columns;
  P* const kept = kKeeps ? dynamic_shared<P>() : nullptr;
  // All slopes are those of one function, but for that of the row's class.
  const auto store_all = [&](auto slope, int of_class, float less, const P* from) {
    const auto piece = [&](int column, const P& read) {
      float slopes[L::kWide];
#pragma unroll
      for (int i = 0; i < L::kWide; ++i) slopes[i] = slope(widened(read.of[i]));
      if (static_cast<unsigned>(of_class - column) < static_cast<unsigned>(L::kWide)) {
#pragma unroll
        for (int i = 0; i < L::kWide; ++i)
          if (column + i == of_class) slopes[i] -= less;
      }
      *reinterpret_cast<P*>(to + column) = narrowed_piece<T>(slopes);
    };
    const auto edge = [&](int column, T element) {
      to[column] = narrowed<T>(slope(widened(element)) - (column == of_class ? less : 0));
    };
    if (kKeeps && from)
      row.each_kept(from, piece, edge);
    else
      row.each(piece, edge);
  };
  const bool tells = losses && threadIdx.x == 0;
  if (target == classes.ignored) {
    if (tells) losses[r] = 0;
    return store_all([](float) { return 0.0f; }, -1, 0, nullptr);
  }
  const float logit = tells ? logit_of(x + r * columns, target, columns) : 0;  // before dx overwrites it
  const RowExps e = exps_of(row, kept);
  if (tells) losses[r] = loss_of_target(e, logit);
  const float own = *share, scale = own / e.sum;
  const int of_class = target >= 0 && target < columns ? static_cast<int>(target) : -1;
  store_all([&](float v) { return exp_for<T>(v - e.most) * scale; }, of_class, own, kept);
}

// dx may be x.
template <class L>
__global__ void __launch_bounds__(L::kThreads)
    gradients_of_rows(const typename L::T* x, Classes classes, const float* share, typename L::T* dx,
                      float* losses, int64_t rows, int columns) {
  wait_for_kernels_before();
  let_next_kernel_start();
  const int64_t r = row_of_thread<L>();
  if (r >= rows) return;
  const int64_t target = classes.of(r);
  const bool tells = losses && threadIdx.x % L::kOfRow == 0;
  const float logit = tells ? logit_of(x + r * columns, target, columns) : 0;  // before dx overwrites it
  const Row<L> row(x + r * columns, columns);
  if (target == classes.ignored) {
    if (tells) losses[r] = 0;
    store<L>(dx + r * columns, columns, [](At, float) { return 0.0f; }, row);
    return;
  }
  const RowExps e = exps_of(row);
  if (tells) losses[r] = loss_of_target(e, logit);
  const float own = *share, scale = own / e.sum;
  store<L>(
      dx + r * columns, columns,
      [&](At c, float v) {
        return exp_for<typename L::T>(v - e.most) * scale - (c.column == target ? own : 0);
      },
      row);
}

Support accepts(const OpCall& c) {
  const bool grad = c.op() != "cross_entropy";
  if (c.updates() > 1 || (c.updates() != 0 && c.raw()->update_inputs[0] != 0))
    return Support::no("can only write result 0 over input 0");
  if (c.input(grad ? 3 : 2).has()) return Support::no("classes must have no weight");
  const DType target = c.input(1).dtype();
  if (target != DType::i32 && target != DType::i64)
    return Support::no("targets must be i32 or i64, got {}", target);
  if (c.input(0).rank() != 2) return Support::no("logits must have 2 axes, got {}", c.input(0).rank());
  return takes_rows(c.input(0));
}

// The gradient's share of each row, then a loss for each row.
Outcome prepare(const OpCall& c, weft_plan& plan) {
  const int64_t rows = c.op() == "cross_entropy_grad" ? 0 : c.input(0).max()[0];
  plan.workspace = static_cast<uint64_t>(rows + 1) * sizeof(float);
  return Outcome::ok();
}

/// How rows are divided into tiles. More rows, or longer ones, never have fewer tiles, so a workspace for the
/// largest sizes is enough.
struct Division {
  template <class S>
  Division(S*, int64_t rows, int64_t columns)
      : parts(static_cast<int>(std::max<int64_t>((columns + S::kColumns - 1) / S::kColumns, 1))),
        pieces(static_cast<int>((columns / S::kWide + parts - 1) / parts)),
        tiles(std::max<int64_t>((rows + S::kTeams - 1) / S::kTeams, 1) * parts),
        pairs(tiles + (parts > 1 ? std::max<int64_t>(rows, 1) : 0)) {}

  int parts, pieces;
  int64_t tiles, pairs;  // of floats, in the workspace
};
/// f(LossTile*): the fewest warps that hold a row, or as many as a block has.
template <class T, bool kEdges, class F>
Outcome with_tile(int64_t columns, F f) {
  const auto hold = [&]<class S>(S*) { return columns <= S::kColumns; };
  if (LossTile<T, 1, kEdges>* s = nullptr; hold(s)) return f(s);
  if (LossTile<T, 2, kEdges>* s = nullptr; hold(s)) return f(s);
  if (LossTile<T, 4, kEdges>* s = nullptr; hold(s)) return f(s);
  if (LossTile<T, 8, kEdges>* s = nullptr; hold(s)) return f(s);
  return f(static_cast<LossTile<T, 16, kEdges>*>(nullptr));
}
Outcome prepare_tiles(const OpCall& c, weft_plan& plan) {
  const auto sizes = c.input(0).max();
  return with_type(c.input(0).dtype(), [&]<class T>(T*) {
    return with_tile<T, true>(sizes[1], [&]<class S>(S* s) {
      plan.workspace = static_cast<uint64_t>(Division(s, sizes[0], sizes[1]).pairs) * sizeof(TwoFloats);
      return Outcome::ok();
    });
  });
}

Classes classes_of(const Launch& l) {
  const TensorView t = l.input(1);
  return {t.data(), t.dtype() == DType::i64, l.call().attr("ignore_index").integer(-100),
          l.call().attr("summed").integer(0) != 0};
}

/// Whether rows are taken by a block each and as LongRow: those that are too long for two pieces in each of
/// 256 threads, or do not begin at 16 bytes. `to` is what is written: as aligned as x.
bool takes_long_rows(TensorView x, TensorView to) {
  const int64_t columns = x.dim(1), in_registers = int64_t{256} * 2 * 16 / byte_size(x.dtype());
  const auto past = [](TensorView t) { return reinterpret_cast<uintptr_t>(t.data()) % 16; };
  if (columns <= 1024 || past(x) != past(to)) return false;
  return columns > in_registers || !aligned_rows(columns, {x});
}
/// f(LongRow*): more threads for a row if it is long, so that the rows at work fit into the L2 cache until
/// they are read again.
template <class T, class F>
Outcome with_long_rows(int columns, F f) {
  constexpr int kShared = 1 << 16;  // bytes
  if (columns <= kShared / static_cast<int>(sizeof(T))) return f(static_cast<LongRow<T, 128>*>(nullptr));
  return f(static_cast<LongRow<T, 512>*>(nullptr));
}

/// Whether a block's shared memory keeps a row of so many bytes, and that of another block beside it.
bool keeps_row(const Launch& l, size_t bytes) {
  return bytes <= (has_large_shared(l) ? size_t{112} << 10 : size_t{48} << 10);
}

float* losses_in(const Launch& l) { return l.workspace().data<float>() + 1; }

// The losses of all rows in one number.
Outcome loss_of_all(const Launch& l, TensorView to) {
  return with_type(to.dtype(), [&]<class T>(T*) {
    return start(l, {1}, kMeanThreads, 0, loss_of_rows<T>, losses_in(l), classes_of(l), to.data<T>(),
                 l.input(0).dim(0));
  });
}

/// Lanes that share out the parts of a row.
int lanes_for(int parts) {
  const int wanted = (parts + kPartsAtOnce - 1) / kPartsAtOnce;
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::min(wanted, kWarp))));
}

Outcome loss(const Launch& l) {
  const TensorView x = l.input(0), to = l.output(0);
  const int64_t rows = x.dim(0), columns = x.dim(1);
  const Classes classes = classes_of(l);
  const auto run = [&]<class S>(S* s) {
    using T = typename S::T;
    const Division d(s, rows, columns);
    auto* const found = l.workspace().data<TwoFloats>();
    const LossTask<T> task{.x = x.data<const T>(),
                           .classes = classes,
                           .found = found,
                           .logits = found + d.tiles,
                           .rows = static_cast<int>(rows),
                           .columns = static_cast<int>(columns),
                           .parts = d.parts,
                           .pieces = d.pieces};
    auto told = start(l, {static_cast<unsigned>(d.tiles)}, S::kThreads, 0, losses_of_tiles<S>, task);
    if (!told.good()) return told;
    const LossFinish finish{.found = task.found,
                            .logits = task.logits,
                            .tiles = static_cast<int>(d.tiles),
                            .rows = task.rows,
                            .parts = d.parts,
                            .lanes = lanes_for(d.parts),
                            .summed = classes.summed};
    return with_type(to.dtype(), [&]<class U>(U*) {
      return start(l, {1}, kFinishThreads, 0, loss_of_tiles<U>, finish, to.data<U>());
    });
  };
  return with_type(x.dtype(), [&]<class T>(T*) {
    return aligned_rows(columns, {x}) ? with_tile<T, false>(columns, run) : with_tile<T, true>(columns, run);
  });
}

// `losses`: null where none is wanted.
Outcome gradients(const Launch& l, float* losses) {
  const TensorView x = l.input(0), dx = l.output(0);
  const Classes classes = classes_of(l);
  const int64_t rows = x.dim(0);
  const auto columns = static_cast<int>(x.dim(1));
  if (x.size() == 0) return Outcome::ok();
  auto* const share = l.workspace().data<float>();
  const TensorView dloss = l.input(2);
  const auto told = with_type(dloss.dtype(), [&]<class T>(T*) {
    return start(l, {1}, kMeanThreads, 0, share_of_rows<T>, dloss.data<const T>(), classes, share, rows);
  });
  if (!told.good()) return told;
  return with_type(x.dtype(), [&]<class T>(T*) {
    if (takes_long_rows(x, dx))
      return with_long_rows<T>(columns, [&]<class L>(L*) {
        const size_t bytes = static_cast<size_t>(columns) * sizeof(T);
        const auto run = [&](size_t shared, auto* kernel) {
          return start(l, {static_cast<unsigned>(rows)}, L::kThreads, shared, kernel, x.data<const T>(),
                       classes, share, dx.data<T>(), losses, columns);
        };
        return keeps_row(l, bytes) ? run(bytes, gradients_of_long_rows<L, true>)
                                   : run(0, gradients_of_long_rows<L, false>);
      });
    return with_layout<T, 2>(columns, aligned_rows(columns, {x, dx}), [&]<class L>(L*) {
      return start(l, blocks_of_rows<L>(rows), L::kThreads, 0, gradients_of_rows<L>, x.data<const T>(),
                   classes, share, dx.data<T>(), losses, rows, columns);
    });
  });
}

Outcome gradient(const Launch& l) { return gradients(l, nullptr); }

Outcome loss_and_gradient(const Launch& l) {
  const auto told = gradients(l, losses_in(l));
  return told.good() ? loss_of_all(l, l.output(1)) : told;
}

}  // namespace

std::span<const KernelRecord> cross_entropy_rows() {
  static const KernelRecord all[] = {{.op = "cross_entropy",
                                      .variant = "rows",
                                      .reads = {"ignore_index", "wide", "summed"},
                                      .accepts = accepts,
                                      .prepare = prepare_tiles,
                                      .launch = loss},
                                     {.op = "cross_entropy_grad",
                                      .variant = "rows",
                                      .reads = {"ignore_index", "summed"},
                                      .accepts = accepts,
                                      .prepare = prepare,
                                      .launch = gradient,
                                      .in_place = true},
                                     {.op = "cross_entropy_with_grad",
                                      .variant = "rows",
                                      .reads = {"ignore_index", "wide", "summed"},
                                      .accepts = accepts,
                                      .prepare = prepare,
                                      .launch = loss_and_gradient,
                                      .in_place = true}};
  return all;
}

}  // namespace weft::cuda
