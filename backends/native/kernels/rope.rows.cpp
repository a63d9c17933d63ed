#include <algorithm>

#include "backends/native/row_launch.h"
#include "weft/shared/walk.hpp"

// One pass over the rows; the tables are read in place, however they broadcast.
namespace weft::native {

using namespace weft::backend;

static std::span<const int64_t> without_last(std::span<const int64_t> dims) {
  return dims.first(dims.size() - 1);
}

static Support accepts(const OpCall& c) {
  if (auto s = shared::arity(c, 3, 1); !s) return s;
  const TypeView x = c.input(0), y = c.output(0);
  for (const TypeView t : {x, c.input(1), c.input(2), y})
    if (t.dtype() != y.dtype() || t.rank() < 1) return Support::no("wants rows of one dtype");
  if (y.dtype() != DType::f32 && y.dtype() != DType::f16 && y.dtype() != DType::bf16)
    return Support::no("dtype must be f32, f16 or bf16, got {}", y.dtype());
  if (!std::ranges::equal(x.max(), y.max())) return Support::no("the result must have shape {}", x.max());
  for (const TypeView table : {c.input(1), c.input(2)}) {
    const auto rows = without_last(x.max()), own = without_last(table.max());
    bool fits = own.size() <= rows.size() && 2 * table.max().back() == x.max().back();
    for (size_t i = 0; fits && i < own.size(); ++i)
      fits = own[i] == 1 || own[i] == rows[rows.size() - own.size() + i];
    if (!fits) return Support::no("table {} does not fit x {}", table.max(), x.max());
  }
  return Support::yes();
}

static void turn(const float* x, const float* cosine, const float* sine, int64_t half, bool interleaved,
                 float* y) {
  if (interleaved) {
    for (int64_t i = 0; i < half; ++i) {
      const float a = x[2 * i], b = x[2 * i + 1];
      y[2 * i] = a * cosine[i] - b * sine[i], y[2 * i + 1] = a * sine[i] + b * cosine[i];
    }
    return;
  }
  for (int64_t i = 0; i < half; ++i) {
    const float a = x[i], b = x[half + i];
    y[i] = a * cosine[i] - b * sine[i], y[half + i] = a * sine[i] + b * cosine[i];
  }
}

static Outcome launch(const Launch& l) {
  const TensorView x = l.input(0), cosine = l.input(1), sine = l.input(2), y = l.output(0);
  const int64_t dim = x.dim(x.rank() - 1), half = dim / 2;
  const bool interleaved = l.call().attr("interleaved").integer() != 0;
  const shared::Walk<2> walk(without_last(y.dims()),
                             {without_last(cosine.dims()), without_last(sine.dims())});
  const Stored type = stored_float(y.dtype());
  const auto turn_row = [&](int64_t row, int64_t c, int64_t s) {
    if (type == Stored::f32)
      return turn(x.data<float>() + row * dim, cosine.data<float>() + c * half, sine.data<float>() + s * half,
                  half, interleaved, y.data<float>() + row * dim);
    float* wide = scratch<float>(Scratch::rows, 3 * dim);  // x, cosine and sine, y
    widen(type, x.data<uint16_t>() + row * dim, wide, dim);
    widen(type, cosine.data<uint16_t>() + c * half, wide + dim, half);
    widen(type, sine.data<uint16_t>() + s * half, wide + dim + half, half);
    turn(wide, wide + dim, wide + dim + half, half, interleaved, wide + 2 * dim);
    narrow(type, wide + 2 * dim, y.data<uint16_t>() + row * dim, dim);
  };
  l.host().parallel_for(walk.total(), shared::grain_for(dim), [&](int64_t begin, int64_t end) {
    walk.run(begin, end, [&](int64_t row, const auto& at, int64_t n) {
      for (int64_t i = 0; i < n; ++i)
        turn_row(row + i, at[0] + i * walk.stride(0), at[1] + i * walk.stride(1));
    });
  });
  return Outcome::ok();
}

extern const KernelRecord rope_rows = {
    .op = "rope",
    .variant = "rows",
    .reads = {"interleaved"},
    .accepts = accepts,
    .launch = launch,
    .in_place = true,
};

}  // namespace weft::native
