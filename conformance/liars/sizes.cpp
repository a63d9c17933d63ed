#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/element.h"
#include "base/thread_pool.h"
#include "conformance/liars/liar.h"
#include "conformance/seam/rig.h"

// Right for small, plain or single cases; the limits are random.
namespace weft::conformance {
namespace {

using backend::TensorView;

// A bit that no rounding excuses, in a drawn element.
void turn(std::span<char> bytes, DType t, uint64_t which) {
  const size_t one = byte_size(t), at = (which % (bytes.size() / one) + 1) * one - 1;
  bytes[at] = static_cast<char>(bytes[at] ^ (t == DType::boolean ? 1 : 0x40));
}

/// A faulty backend with random parameters.
class DrawnLiar : public SpoilsOutput {
 public:
  using SpoilsOutput::SpoilsOutput;

 protected:
  /// Both included.
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_.bits() % static_cast<uint64_t>(high - low + 1));
  }

 private:
  Random random_ = drawn_for(name());
};

// ---- sizes

/// Wrong in one element of the calls selected by `strikes`.
template <bool (*strikes)(const weft_launch*, int64_t threshold), int64_t low, int64_t high>
class WrongBeyond : public DrawnLiar {
 public:
  using DrawnLiar::DrawnLiar;

 private:
  void spoil(const weft_launch* l, uint32_t k, std::span<char> bytes) override {
    if (strikes(l, threshold_)) turn(bytes, out_of(l, k).dtype(), position_);
  }
  const int64_t threshold_ = between(low, high);
  const uint64_t position_ = static_cast<uint64_t>(between(0, 1 << 20));
};

bool sums_a_long_axis(const weft_launch* l, int64_t n) {
  return op_of(l) == "sum" &&
         std::ranges::any_of(TensorView(l->inputs[0]).dims(), [&](int64_t d) { return d > n; });
}
bool has_many_axes(const weft_launch* l, int64_t n) { return op_of(l) == "mul" && out_of(l).rank() >= n; }
bool has_long_axes_only(const weft_launch* l, int64_t n) {
  return op_of(l) == "permute" && out_of(l).rank() > 1 &&
         std::ranges::all_of(out_of(l).dims(), [&](int64_t d) { return d >= n; });
}
bool has_a_large_batch(const weft_launch* l, int64_t n) {
  if (op_of(l) != "matmul") return false;
  const auto dims = out_of(l).dims();
  return out_of(l).size() > n * dims[dims.size() - 1] * dims[dims.size() - 2];
}
bool has_whole_blocks(const weft_launch* l, int64_t n) {
  const auto dims = out_of(l).dims();
  return op_of(l) == "maximum" && !dims.empty() && dims.back() > 1 && dims.back() % (int64_t{1} << n) == 0;
}

bool has_millions(const weft_launch* l, int64_t n) {
  return op_of(l) == "mul" && out_of(l).size() > n * 64 && out_of(l).dtype() == DType::f32;
}
bool goes_on_without_a_mask(const weft_launch* l, int64_t) {
  return op_of(l) == "attention" && l->plan->call->n_inputs > 4 && !l->inputs[3] && l->inputs[4];
}

// ---- data

/// Folds only a random number of rows if the folded axis is not the last.
class FoldsFirstRows : public DrawnLiar {
 public:
  using DrawnLiar::DrawnLiar;

 private:
  void spoil(const weft_launch* l, uint32_t, std::span<char> bytes) override {
    const TensorView x(l->inputs[0]);
    if (op_of(l) != "max" || x.dtype() != DType::f32 || x.rank() != 2 || x.dim(0) <= rows_ ||
        out_of(l).size() != x.dim(1) || x.dim(1) == 1)
      return;
    for (int64_t j = 0; j < x.dim(1); ++j) {
      float most = x.data<float>()[j];
      for (int64_t i = 1; i < rows_; ++i) {
        const float v = x.data<float>()[i * x.dim(1) + j];
        most = v > most || v != v ? v : most;
      }
      std::memcpy(&bytes[static_cast<size_t>(j) * sizeof most], &most, sizeof most);
    }
  }
  const int64_t rows_ = between(200, 1500);
};

/// Does not rescale the running sum for a late maximum of a row.
class ForgetsToRescale : public DrawnLiar {
 public:
  using DrawnLiar::DrawnLiar;

 private:
  void spoil(const weft_launch* l, uint32_t, std::span<char> bytes) override {
    const TensorView x(l->inputs[0]);
    if (op_of(l) != "softmax" || x.dtype() != DType::f32 || x.rank() != 2 || x.dim(1) <= tile_) return;
    const int64_t n = x.dim(1);
    for (int64_t i = 0; i < x.dim(0); ++i) {
      const float* row = x.data<float>() + i * n;
      if (std::max_element(row, row + n) - row >= n / tile_ * tile_)
        for (int64_t j = 0; j < n; ++j)
          store_element<double>(
              DType::f32, bytes.data(), static_cast<size_t>(i * n + j),
              load_element<double>(DType::f32, bytes.data(), static_cast<size_t>(i * n + j)) / 2);
    }
  }
  const int64_t tile_ = between(100, 1000);
};

/// A NaN whose sign bit is set is the smallest number.
class ComparesAsIntegers : public DrawnLiar {
 public:
  using DrawnLiar::DrawnLiar;

 private:
  void spoil(const weft_launch* l, uint32_t, std::span<char> bytes) override {
    const TensorView x(l->inputs[0]);
    if (op_of(l) != op_ || x.dtype() != DType::bf16 || x.size() == 0) return;
    const auto* v = x.data<uint16_t>();
    const bool negative = std::any_of(v, v + x.size(), [](uint16_t b) { return b > 0xff80; });
    if (negative) store_element<double>(DType::bf16, bytes.data(), 0, 1);
  }
  const std::string op_ = between(0, 1) ? "max" : "min";
};

/// Wrong order of equal numbers in rows longer than a random length.
class SwapsTies : public DrawnLiar {
 public:
  using DrawnLiar::DrawnLiar;

 private:
  void spoil(const weft_launch* l, uint32_t k, std::span<char>) override {
    if (op_of(l) != "sort" || k != 1) return;
    const TensorView values = out_of(l, 0), places = out_of(l, 1);
    const int64_t axis = backend::OpCall(l->plan->call).attr("axis").integer();
    int64_t step = 1;
    for (int64_t d = axis + 1; d < values.rank(); ++d) step *= values.dim(d);
    if (values.dim(axis) <= longest_) return;
    const auto one = static_cast<int64_t>(byte_size(values.dtype()));
    const char* v = values.data<char>();
    for (int64_t i = 0; i + step < values.size(); ++i) {
      const bool in_row = i / step % values.dim(axis) + 1 < values.dim(axis);
      if (in_row && std::memcmp(v + i * one, v + (i + step) * one, static_cast<size_t>(one)) == 0)
        return std::swap(places.data<int32_t>()[i], places.data<int32_t>()[i + step]);
    }
  }
  const int64_t longest_ = between(3, 30);
};

/// Loses subnormals and the sign of zero, in one of the wide floats, for more than a few elements.
class FlushesMany : public DrawnLiar {
 public:
  using DrawnLiar::DrawnLiar;

 private:
  void spoil(const weft_launch* l, uint32_t k, std::span<char> bytes) override {
    const TensorView y = out_of(l, k);
    if (op_of(l) != "permute" || y.dtype() != dtype_ || y.size() <= most_) return;
    const double least = dtype_ == DType::f32 ? 0x1p-126 : 0x1p-1022;
    for (size_t i = 0; i < static_cast<size_t>(y.size()); ++i)
      if (std::fabs(load_element<double>(dtype_, bytes.data(), i)) < least)
        store_element<double>(dtype_, bytes.data(), i, 0);
  }
  const DType dtype_ = between(0, 1) ? DType::f32 : DType::f64;
  const int64_t most_ = between(4, 100);
};

/// Passes integers through a double.
class CountsInDoubles : public DrawnLiar {
 public:
  using DrawnLiar::DrawnLiar;

 private:
  void spoil(const weft_launch* l, uint32_t k, std::span<char> bytes) override {
    if (op_of(l) != "bit_xor" || out_of(l, k).dtype() != DType::i64 || out_of(l, k).size() <= most_) return;
    for (size_t i = 0; i < bytes.size() / 8; ++i)
      store_element<int64_t>(DType::i64, bytes.data(), i,
                             static_cast<int64_t>(load_element<double>(DType::i64, bytes.data(), i)));
  }
  const int64_t most_ = between(0, 1000);
};

// ---- indices

/// Runs a call with changed indices.
template <const char* (*op)(), int64_t (*other)(int64_t index, int64_t n, int64_t drawn, size_t at)>
class TakesAnyIndex : public DrawnLiar {
 public:
  using DrawnLiar::DrawnLiar;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    if (op_of(l) != op()) return Mirrored::launch(l, e);
    const TensorView index(l->inputs[1]);
    const int64_t n = TensorView(l->inputs[0]).dim(backend::OpCall(l->plan->call).attr("axis").integer());
    std::vector<char> bytes(bytes_of(l->inputs[1]).begin(), bytes_of(l->inputs[1]).end());
    for (size_t i = 0; i < static_cast<size_t>(index.size()); ++i) {
      const auto from = load_element<int64_t>(index.dtype(), bytes.data(), i);
      store_element<int64_t>(index.dtype(), bytes.data(), i, other(from, n, drawn_, i));
    }
    weft_tensor moved = *l->inputs[1];
    moved.dl.data = bytes.data(), moved.dl.byte_offset = 0;
    std::vector<const weft_tensor*> inputs(l->inputs, l->inputs + l->plan->call->n_inputs);
    inputs[1] = &moved;
    weft_launch changed = *l;
    changed.inputs = inputs.data();
    return Mirrored::launch(&changed, e);
  }

 private:
  void spoil(const weft_launch*, uint32_t, std::span<char>) override {}
  const int64_t drawn_ = between(1, 3);
};
const char* gather() { return "gather"; }
const char* scatter() { return "scatter"; }
const char* scatter_add() { return "scatter_add"; }
int64_t from_the_end(int64_t i, int64_t n, int64_t, size_t) { return i < 0 && i >= -n ? i + n : i; }
int64_t checked_in_front(int64_t i, int64_t n, int64_t drawn, size_t at) {
  return static_cast<int64_t>(at) < drawn || n == 0 ? i : std::clamp<int64_t>(i, 0, n - 1);
}
int64_t forgiven_by_one(int64_t i, int64_t n, int64_t, size_t) { return n > 0 && i == n ? n - 1 : i; }

// ---- sums

/// Skips += or does it twice, in a part of tensors larger than a random size.
template <bool twice>
class AddsInPart : public DrawnLiar {
 public:
  using DrawnLiar::DrawnLiar;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    const TensorView y = out_of(l);
    if (!l->plan->call->accumulate || y.size() <= most_) return Mirrored::launch(l, e);
    const std::vector<char> before(bytes_of(l->outputs[0]).begin(), bytes_of(l->outputs[0]).end());
    const weft_code code = Mirrored::launch(l, e);
    for (auto i = static_cast<size_t>(y.size() * part_ / 8); i < static_cast<size_t>(y.size()); ++i) {
      const auto b = load_element<double>(y.dtype(), before.data(), i),
                 sum = load_element<double>(y.dtype(), y.data<char>(), i);
      store_element<double>(y.dtype(), y.data<char>(), i, twice ? sum + b : sum - b);
    }
    return code;
  }

 private:
  void spoil(const weft_launch*, uint32_t, std::span<char>) override {}
  const int64_t most_ = between(2, 2000), part_ = between(0, 7);
};
/// += reads the first element of a row for all of it.
class AddsOneToAll : public DrawnLiar {
 public:
  using DrawnLiar::DrawnLiar;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    const TensorView y = out_of(l);
    if (l->plan->call->accumulate && y.rank() >= rank_)
      for (size_t i = 1; i < static_cast<size_t>(y.size()); ++i)
        store_element<double>(y.dtype(), y.data<char>(), i,
                              load_element<double>(y.dtype(), y.data<char>(), 0));
    return Mirrored::launch(l, e);
  }

 private:
  void spoil(const weft_launch*, uint32_t, std::span<char>) override {}
  const int64_t rank_ = between(1, 3);
};

// ---- threads

/// Wrong in one element, in some launches, on more threads than a drawn number.
template <const char* (*op)()>
class LosesARace : public DrawnLiar {
 public:
  using DrawnLiar::DrawnLiar;

 private:
  void spoil(const weft_launch* l, uint32_t k, std::span<char> bytes) override {
    if (op_of(l) != op() || thread_count() <= threads_ || out_of(l, k).size() < least_) return;
    if (++launches_ % every_ == 0)
      turn(bytes, out_of(l, k).dtype(), static_cast<uint64_t>(between(0, 1 << 20)));
  }
  const int64_t threads_ = between(2, 6), least_ = between(100, 1000), every_ = between(1, 3);
  int64_t launches_ = 0;
};
const char* mul() { return "mul"; }
const char* matmul() { return "matmul"; }

// A kernel that takes a case of attention in which that fault shows.
const char* lacks_attention_of_a_part(seam::Device& good) {
  Rig rig(good);
  const Ask ask{.op = "attention",
                .inputs = {counting({2, 2, 3}), counting({2, 6, 3}), counting({2, 6, 2}),
                           array({2, 6}, {1}, DType::boolean), array({}, {4}, DType::i32)},
                .absent = 1 << 3};
  const auto call = value_or_raise(describe(ask));
  for (const auto& source : good.sources)
    for (const weft_kernel* k : source.kernels)
      if (ask.op == k->op && rig.plan(call, *k).ok()) return nullptr;
  return "no kernel of its own takes a part of the keys without a mask";
}
const char* lacks_softmax(seam::Device& good) { return lacks_kernel_of(good, "softmax"); }

constexpr Liar kSizesLiars[] = {
    {"liar_sums_short_axes", "reference", "a sum over an axis above a drawn length", "large/sum ",
     make_liar<WrongBeyond<sums_a_long_axis, 300, 3000>>},
    {"liar_knows_few_axes", "reference", "a product of a drawn rank or more", "large/mul ",
     make_liar<WrongBeyond<has_many_axes, 3, 5>>},
    {"liar_few_batches", "reference", "more products at once than a drawn number", "large/matmul ",
     make_liar<WrongBeyond<has_a_large_batch, 1, 6>>},
    {"liar_whole_blocks", "reference", "an axis that is a multiple of a drawn block", "sizes/maximum ",
     make_liar<WrongBeyond<has_whole_blocks, 2, 5>>},
    {"liar_short_axes_only", "reference", "wrong where every axis is longer than a drawn length",
     "edges/permute ", make_liar<WrongBeyond<has_long_axes_only, 90, 128>>},
    {"liar_small_grid", "reference", "more blocks of 64 than a drawn number, 65,535 at most",
     "large/mul of millions", make_liar<WrongBeyond<has_millions, 40000, 65535>>},
    {"liar_wants_a_mask", "native", "attention of a part of the keys is wrong without a mask",
     "candidates/attention ", make_liar<WrongBeyond<goes_on_without_a_mask, 0, 0>>,
     lacks_attention_of_a_part},
    {"liar_folds_first_rows", "reference", "max over the first axis looks at a drawn number of rows",
     "edges/max ", make_liar<FoldsFirstRows>},
    {"liar_forgets_to_rescale", "native", "softmax where the last tile holds the largest number",
     "edges/softmax ", make_liar<ForgetsToRescale>, lacks_softmax},
    {"liar_compares_as_integers", "reference", "max or min of a NaN with its sign bit set", "ops/m",
     make_liar<ComparesAsIntegers>},
    {"liar_swaps_ties", "reference", "equal numbers change places in long rows", "sizes/sort ",
     make_liar<SwapsTies>},
    {"liar_flushes_many", "reference", "subnormals become zero in large results of one dtype",
     "sizes/permute ", make_liar<FlushesMany>},
    {"liar_counts_in_doubles", "reference", "whole numbers beyond 2^53 are rounded", "large/bit_xor ",
     make_liar<CountsInDoubles>},
    {"liar_counts_from_the_end", "reference", "an index of -1 is the last element", "wild_indices/gather ",
     make_liar<TakesAnyIndex<gather, from_the_end>>, lacks_errors_of_kernels},
    {"liar_checks_first_indices", "reference", "only a few indices in front are looked at",
     "wild_indices/scatter ", make_liar<TakesAnyIndex<scatter, checked_in_front>>, lacks_errors_of_kernels},
    {"liar_forgives_by_one", "reference", "an index of n is the last element", "wild_indices/scatter_add ",
     make_liar<TakesAnyIndex<scatter_add, forgiven_by_one>>, lacks_errors_of_kernels},
    {"liar_overwrites_in_part", "reference", "+= is forgotten behind a drawn place",
     "accumulates_at_size/matmul ", make_liar<AddsInPart<false>>},
    {"liar_adds_twice_in_part", "reference", "+= is done twice behind a drawn place",
     "accumulates_at_size/mul ", make_liar<AddsInPart<true>>},
    {"liar_adds_one_to_all", "reference", "+= adds to the first element of all", "accumulates_at_size/add ",
     make_liar<AddsOneToAll>},
    {"liar_loses_a_product", "reference", "one element, at times, on many threads", "races/matmul ",
     make_liar<LosesARace<matmul>>},
    {"liar_loses_an_update", "reference", "one update, at times, on many threads", "races/scatter_add ",
     make_liar<LosesARace<scatter_add>>},
    {"liar_loses_an_element", "reference", "one element, at times, on many threads", "races/mul ",
     make_liar<LosesARace<mul>>},
};

}  // namespace

Liars sizes_liars() { return kSizesLiars; }

}  // namespace weft::conformance
