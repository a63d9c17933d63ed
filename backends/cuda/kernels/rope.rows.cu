#include <array>

#include "../collect.hpp"
#include "../kernels.hpp"
#include "../rows.hpp"

// Rotary embedding. The rotations of queries and of keys are one launch.
namespace weft::cuda {

using namespace backend;

namespace {

constexpr int kMostAxes = 5;

/// The rows of x, and which row of the tables each has: tables are broadcast along axes of stride 0.
struct TableRows {
  int axes;
  int sizes[kMostAxes], strides[kMostAxes];

  __device__ int64_t row_of(int64_t row) const {
    int64_t at = 0;
    for (int d = axes - 1; d >= 0; --d) {
      at += row % sizes[d] * strides[d];
      row /= sizes[d];
    }
    return at;
  }
};

template <class T>
struct Rotation {
  struct Piece {
    const T *x, *cosine, *sine;
    T* y;
    int64_t n;  // pairs
    int half;   // pairs of a row
    bool interleaved;
    TableRows tables;
  };
  static constexpr int kMost = 4;
  struct Common {
    bool operator==(const Common&) const = default;
  };

  static __device__ void run(const Piece& p, const Common&, int64_t begin, int64_t end) {
    const int apart = p.interleaved ? 1 : p.half;
    for (int64_t i = begin + threadIdx.x; i < end; i += 256) {
      const int64_t row = i / p.half, table = p.tables.row_of(row) * p.half;
      const int pair = static_cast<int>(i % p.half);
      const int64_t at = row * 2 * p.half + (p.interleaved ? 2 * pair : pair);
      const float a = widened(p.x[at]), b = widened(p.x[at + apart]), cosine = widened(p.cosine[table + pair]),
                  sine = widened(p.sine[table + pair]);
      p.y[at] = narrowed<T>(a * cosine - b * sine);
      p.y[at + apart] = narrowed<T>(a * sine + b * cosine);
    }
  }
  static Outcome finish(Queue&, const Pieces<Rotation>&) { return Outcome::ok(); }
};

TableRows table_rows(std::span<const int64_t> x, std::span<const int64_t> table) {
  TableRows r{};
  r.axes = static_cast<int>(x.size()) - 1;
  int stride = 1;
  for (size_t d = x.size() - 1; d-- > 0;) {
    const size_t missing = x.size() - table.size();
    const int64_t size = d < missing ? 1 : table[d - missing];
    r.sizes[d] = static_cast<int>(x[d]);
    r.strides[d] = size == 1 ? 0 : stride;
    stride *= static_cast<int>(size);
  }
  return r;
}

Support accepts(const OpCall& c) {
  const TypeView x = c.input(0);
  if (x.rank() > kMostAxes + 1) return Support::no("at most {} axes, got {}", kMostAxes + 1, x.rank());
  return takes_rows(x);
}

Outcome launch(const Launch& l) {
  const TensorView x = l.input(0), cosine = l.input(1), sine = l.input(2), y = l.output(0);
  if (x.size() == 0) return Outcome::ok();
  const auto range = [](TensorView t) { return Range{t.data(), t.data() + t.bytes()}; };
  const bool interleaved = l.call().attr("interleaved").integer();
  return with_type(x.dtype(), [&]<class T>(T*) {
    return collect<Rotation<T>>(
        l, {},
        {x.data<const T>(), cosine.data<const T>(), sine.data<const T>(), y.data<T>(), x.size() / 2,
         static_cast<int>(x.dim(x.rank() - 1) / 2), interleaved, table_rows(x.dims(), cosine.dims())},
        std::array{range(x), range(cosine), range(sine)}, std::array{range(y)});
  });
}

}  // namespace

std::span<const KernelRecord> rope_rows() {
  static const KernelRecord all[] = {
      {.op = "rope", .variant = "rows", .reads = {"interleaved"}, .accepts = accepts, .launch = launch}};
  return all;
}

}  // namespace weft::cuda
