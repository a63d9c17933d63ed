#include "backends/native/split_product.h"

#include "backends/native/scratch.h"

namespace weft::native {
namespace {

constexpr int64_t kLeastRows = 48;  // fewer wait for b, which takes half as much memory again as f32
constexpr int64_t kTasks = 16;

int64_t panels_of(int64_t lines) { return (lines + kSplitPanel - 1) / kSplitPanel; }

// What is packed: the panels, then a byte for each, 1 where it holds f32: k rows of 32 columns.
uint64_t packed_bytes(const Product<float>& p) {
  return static_cast<uint64_t>(panels_of(p.n) * (split_panel_bytes(p.k) + 64));
}
const uint8_t* plain_flags(const Product<float>& p, const uint8_t* packed) {
  return packed + panels_of(p.n) * split_panel_bytes(p.k);
}

void copy_panel(const Product<float>& b, int64_t j, int64_t columns, float* to) {
  for (int64_t q = 0; q < b.k; ++q, to += kSplitPanel)
    for (int64_t i = 0; i < kSplitPanel; ++i)
      to[i] = i < columns ? b.b[q * b.b_row + (j + i) * b.b_column] : 0;
}

/// Rows of a product, all of b's columns: a split by all threads, then parts of c made.
class Rows {
 public:
  Rows(const backend::Host& host, const Product<float>& p)
      : host_(host),
        p_(p),
        panel_(split_panel_bytes(p.k)),
        b_(reinterpret_cast<const uint8_t*>(p.b)),
        a_(scratch<uint8_t>(Scratch::split, panels_of(p.m) * (panel_ + 1))),
        plain_(a_ + panels_of(p.m) * panel_) {}

  void run() {
    host_.parallel_for(panels_of(p_.m), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Lines rows{p_.a + i * kSplitPanel * p_.a_row, p_.a_row, 1};
        const int64_t count = std::min(kSplitPanel, p_.m - i * kSplitPanel);
        plain_[i] = !split_rows(rows, count, p_.k, a_ + i * panel_);
      }
    });
    const int64_t down = panels_of(p_.m), across = panels_of(p_.n);
    const int64_t columns = (across + kTasks - 1) / kTasks, groups = (across + columns - 1) / columns;
    const int64_t rows = std::max<int64_t>(1, down * groups / kTasks), blocks = (down + rows - 1) / rows;
    host_.parallel_for(blocks * groups, 1, [&](int64_t begin, int64_t end) {
      const SplitScope scope;
      for (int64_t t = begin; t < end; ++t)
        part(t / groups * rows, std::min(down, (t / groups + 1) * rows), t % groups * columns,
             std::min(across, (t % groups + 1) * columns));
    });
  }

 private:
  SplitResult into(int64_t i, int64_t i1, int64_t j, int64_t j1) const {
    return {.c = p_.c + i * kSplitPanel * p_.c_row + j * kSplitPanel,
            .c_row = p_.c_row,
            .rows = std::min(i1 * kSplitPanel, p_.m) - i * kSplitPanel,
            .columns = std::min(j1 * kSplitPanel, p_.n) - j * kSplitPanel,
            .accumulate = p_.accumulate,
            .start = p_.start ? p_.start + j * kSplitPanel : nullptr};
  }
  // Panels [i, i1) of a times [j, j1) of b.
  void part(int64_t i, int64_t i1, int64_t j, int64_t j1) const {
    const uint8_t* b_plain = plain_flags(p_, b_);
    const auto any = [](const uint8_t* flags, int64_t n) {
      return std::any_of(flags, flags + n, [](uint8_t f) { return f; });
    };
    if (!any(plain_ + i, i1 - i) && !any(b_plain + j, j1 - j))
      return multiply_split({a_ + i * panel_, panel_}, {b_ + j * panel_, panel_}, p_.k, into(i, i1, j, j1));
    for (int64_t y = j; y < j1; ++y)
      for (int64_t x = i; x < i1; ++x) {
        const SplitResult to = into(x, x + 1, y, y + 1);
        if (plain_[x] || b_plain[y])
          by_vectors(x, y, b_plain[y], to);
        else
          multiply_split({a_ + x * panel_, panel_}, {b_ + y * panel_, panel_}, p_.k, to);
      }
  }
  void by_vectors(int64_t i, int64_t j, bool plain, const SplitResult& to) const {
    const float* b = reinterpret_cast<const float*>(b_ + j * panel_);
    if (!plain) {
      float* joined = scratch<float>(Scratch::columns, p_.k * kSplitPanel);
      join_columns(b_ + j * panel_, p_.k, joined);
      b = joined;
    }
    multiply(Product<float>{.m = to.rows,
                            .n = to.columns,
                            .k = p_.k,
                            .a = p_.a + i * kSplitPanel * p_.a_row,
                            .a_row = p_.a_row,
                            .b = b,
                            .b_row = kSplitPanel,
                            .c = to.c,
                            .c_row = to.c_row,
                            .accumulate = to.accumulate,
                            .start = to.start});
  }

  const backend::Host& host_;
  const Product<float>& p_;
  const int64_t panel_;  // bytes
  const uint8_t* const b_;
  uint8_t *const a_, *const plain_;  // panels of a, and whether each is out of range
};

// Whether input i is a constant that calls of no other sizes read.
bool in_one_size(const backend::OpCall& c, int64_t i) {
  constexpr uint32_t kOneSize = 2;  // of weft_type::constant
  return backend::read(c.raw()->inputs[i], &weft_type::constant) == kOneSize;
}

}  // namespace

bool worth_splitting(const backend::OpCall& c, const Product<float>& p, int64_t rows) {
  return in_one_size(c, 1) && splits_products() && rows >= kLeastRows && p.n * p.k >= 1 << 14;
}

void want_split(weft_plan& plan, size_t input, const Product<float>& p) {
  want_packed(plan, input,
              backend::format("native.split.1 {}[{}, {}]", p.b_row == 1 ? "transposed" : "", p.k, p.n),
              packed_bytes(p), kSplitLayout);
}

void pack_split(const backend::Host& host, const Product<float>& p, uint8_t* to) {
  const int64_t panel = split_panel_bytes(p.k), panels = panels_of(p.n);
  host.parallel_for(panels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t j = i * kSplitPanel, columns = std::min(kSplitPanel, p.n - j);
      const bool split =
          split_columns({p.b + j * p.b_column, p.b_column, p.b_row}, columns, p.k, to + i * panel);
      if (!split) copy_panel(p, j, columns, reinterpret_cast<float*>(to + i * panel));
      to[panels * panel + i] = !split;
    }
  });
}

// Some rows at a time, so that they and a panel of b fit the L2 cache.
void multiply_split(const backend::Host& host, const Product<float>& p) {
  constexpr int64_t kCached = 3 << 19;
  const int64_t rows =
      std::max(kSplitPanel, std::min<int64_t>(256, kCached / split_panel_bytes(p.k) * kSplitPanel));
  for (int64_t i = 0; i < p.m; i += rows) {
    Product<float> some = p;
    some.m = std::min(rows, p.m - i), some.a += i * p.a_row, some.c += i * p.c_row;
    Rows(host, some).run();
  }
}

}  // namespace weft::native
