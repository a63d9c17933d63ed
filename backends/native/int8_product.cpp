#include "backends/native/int8_product.h"

#include <algorithm>
#include <cstring>

#include "backends/native/scratch.h"

namespace weft::native {

namespace {

using backend::Host;

constexpr int64_t kFewInt8Rows = 4;                  // that don't justify packing b
constexpr int64_t kBlockBytes = int64_t{1} << 21;    // of packed b, and of packed a, at a time
constexpr int64_t kInt8Part = int64_t{1} << 18;      // multiply-adds worth a thread
constexpr int64_t kWorthThreads = int64_t{1} << 21;  // multiply-adds that justify calling threads
constexpr int64_t kBytesAThread = int64_t{1} << 16;  // to pack

int64_t up(int64_t x, int64_t by) { return (x + by - 1) / by; }
int64_t panel_bytes(int64_t width, int64_t k) { return 4 * width * quads_of(k); }
int64_t grain_of(int64_t each, int64_t part) {
  return std::max<int64_t>(1, part / std::max<int64_t>(1, each));
}

// A row of n f32, or n times one, with zeros up to a whole tile: it is read in whole vectors.
const float* readable(Scratch name, int64_t n, Stored type, const void* from, bool each) {
  const int64_t whole = up(n, kMostInt8Width) * kMostInt8Width;
  auto* to = scratch<float>(name, whole);
  if (each)
    widen(type, from, to, n);
  else
    std::fill_n(to, n, *static_cast<const float*>(from));
  std::fill(to + n, to + whole, 0.f);
  return to;
}

// What the tiles of a product have in common.
struct Columns {
  const float *scale, *bias;
};

// Of rows [i, i + rows) and columns [j, j + columns), from their sums.
void finish_tile(const Int8Product& p, const Columns& all, const int32_t* sums, const int32_t* excess,
                 int64_t i, int64_t rows, int64_t j, int64_t columns) {
  float scales[kMostInt8Rows], wide[kMostInt8Rows * kMostInt8Width];
  for (int64_t r = 0; r < rows; ++r) scales[r] = p.a_scale[p.each_a ? i + r : 0];
  const int64_t at = i * p.n + j, width = int8_tiles().width;
  const bool direct = p.type == Stored::f32;
  int8_tiles().finish({.sums = sums,
                       .excess = excess,
                       .rows = rows,
                       .columns = columns,
                       .a_scale = scales,
                       .b_scale = all.scale + j,
                       .bias = all.bias ? all.bias + j : nullptr,
                       .c = direct ? static_cast<float*>(p.c) + at : wide,
                       .c_row = direct ? p.n : width});
  if (direct) return;
  auto* c = static_cast<uint16_t*>(p.c) + at;
  for (int64_t r = 0; r < rows; ++r) narrow(p.type, wide + r * width, c + r * p.n, columns);
}

void few_rows_of_int8(const Host& host, const Int8Product& p, const Columns& all) {
  const Int8Tiles& tiles = int8_tiles();
  host.parallel_for(up(p.n, tiles.width), grain_of(p.m * tiles.width * p.k, kInt8Part),
                    [&](int64_t begin, int64_t end) {
                      int32_t sums[kMostInt8Rows * kMostInt8Width] = {}, none[kMostInt8Rows] = {};
                      for (int64_t t = begin; t < end; ++t) {
                        const int64_t j = t * tiles.width, columns = std::min(tiles.width, p.n - j);
                        tiles.dots({p.a, p.k}, p.m, {p.b + j * p.k, p.k}, columns, p.k, sums);
                        finish_tile(p, all, sums, none, 0, p.m, j, columns);
                      }
                    });
}

// A panel of rows of a, and 128 times the sum of each.
void pack_a(const int8_t* a, int64_t rows, int64_t k, int8_t* to, int32_t* excess) {
  const int64_t panel = int8_tiles().rows, whole = k / 4, quads = quads_of(k);
  for (int64_t r = 0; r < panel; ++r) {
    const int8_t* row = a + r * k;
    int8_t* place = to + 4 * r;
    for (int64_t q = 0; q < quads; ++q) {
      int32_t quad = 0;
      if (r < rows) std::memcpy(&quad, row + 4 * q, q < whole ? size_t{4} : static_cast<size_t>(k % 4));
      std::memcpy(place + 4 * panel * q, &quad, 4);
    }
    int32_t sum = 0;
    for (int64_t q = 0; r < rows && q < k; ++q) sum += row[q];
    excess[r] = 128 * sum;
  }
}

// Packed rows of a, from row i on.
struct PackedRows {
  int64_t i, rows;
  const int8_t* a;
  const int32_t* excess;
};
PackedRows pack_rows(const Host& host, const Int8Product& p, int64_t i, int64_t rows) {
  const int64_t panel = int8_tiles().rows, panels = up(rows, panel), bytes = panel_bytes(panel, p.k);
  auto* a = scratch<int8_t>(Scratch::packed_a, panels * bytes);
  auto* excess = scratch<int32_t>(Scratch::rows, panels * panel);
  host.parallel_for(panels, grain_of(bytes, kBytesAThread), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
      pack_a(p.a + (i + t * panel) * p.k, std::min(panel, rows - t * panel), p.k, a + t * bytes,
             excess + t * panel);
  });
  return {i, rows, a, excess};
}

// Columns [j, j + columns) of c, whose panels of b are packed. Tiles of the same columns follow each other.
void multiply_columns(const Host& host, const Int8Product& p, const Columns& all, const PackedRows& a,
                      int64_t j, int64_t columns, const uint8_t* b) {
  const Int8Tiles& tiles = int8_tiles();
  const int64_t down = up(a.rows, tiles.rows), count = down * up(columns, tiles.width), quads = quads_of(p.k),
                each = 4 * quads * tiles.rows * tiles.width;
  const int64_t grain = count * each < kWorthThreads ? count : grain_of(each, kInt8Part);
  host.parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    alignas(64) int32_t sums[kMostInt8Rows * kMostInt8Width];
    for (int64_t t = begin; t < end; ++t) {
      const int64_t r = t % down * tiles.rows, at = t / down * tiles.width;
      const int64_t rows = std::min(tiles.rows, a.rows - r), some = std::min(tiles.width, columns - at);
      tiles.multiply(a.a + 4 * r * quads, b + 4 * at * quads, quads, rows, some, sums);
      finish_tile(p, all, sums, a.excess + r, a.i + r, rows, j + at, some);
    }
  });
}

void pack_panels(const Host& host, int64_t n, int64_t k, const int8_t* b, uint8_t* to) {
  const int64_t width = int8_tiles().width, bytes = panel_bytes(width, k);
  host.parallel_for(up(n, width), grain_of(bytes, kBytesAThread), [=](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
      int8_tiles().pack_b({b + t * width * k, k}, std::min(width, n - t * width), k, to + t * bytes);
  });
}

}  // namespace

void multiply_int8(const Host& host, const Int8Product& p) {
  if (p.m == 0 || p.n == 0) return;
  const Int8Tiles& tiles = int8_tiles();
  const Columns all{readable(Scratch::columns, p.n, Stored::f32, p.b_scale, p.each_b),
                    p.bias ? readable(Scratch::scores, p.n, p.type, p.bias, true) : nullptr};
  if (!p.packed_b && p.m <= kFewInt8Rows) return few_rows_of_int8(host, p, all);
  const int64_t of_row = 4 * std::max<int64_t>(1, quads_of(p.k));
  const int64_t rows = std::min(p.m, up(kBlockBytes / of_row, tiles.rows) * tiles.rows);
  const int64_t columns = p.packed_b ? p.n : up(kBlockBytes / of_row, tiles.width) * tiles.width;
  for (int64_t j = 0; j < p.n; j += columns) {
    const int64_t some = std::min(columns, p.n - j);
    const uint8_t* b = p.packed_b;
    if (!b) {
      auto* packed =
          scratch<uint8_t>(Scratch::packed_b, up(some, tiles.width) * panel_bytes(tiles.width, p.k));
      pack_panels(host, some, p.k, p.b + j * p.k, packed);
      b = packed;
    }
    for (int64_t i = 0; i < p.m; i += rows)
      multiply_columns(host, p, all, pack_rows(host, p, i, std::min(rows, p.m - i)), j, some, b);
  }
}

int64_t packed_int8_size(int64_t n, int64_t k) {
  const int64_t width = int8_tiles().width;
  return up(n, width) * panel_bytes(width, k);
}
std::string packed_int8_id(int64_t n, int64_t k) {
  return backend::format("native.i8.1 [{}, {}] in panels of {}", n, k, int8_tiles().width);
}
void pack_int8(const Host& host, int64_t n, int64_t k, const int8_t* b, uint8_t* to) {
  pack_panels(host, n, k, b, to);
}

}  // namespace weft::native
