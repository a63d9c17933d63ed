#include <cmath>
#include <cstring>
#include <map>

#include "conformance/liars/liar.h"

// Wrong answers.
namespace weft::conformance {
namespace {

void zero(const weft_launch*, uint32_t, std::span<char> bytes) { std::memset(bytes.data(), 0, bytes.size()); }

// The first element everywhere: a loop that never moves on.
void constant(const weft_launch* l, uint32_t k, std::span<char> bytes) {
  const size_t one = byte_size(out_of(l, k).dtype());
  for (size_t at = one; at < bytes.size(); at += one) std::memcpy(&bytes[at], bytes.data(), one);
}

// The operand instead of the result.
void copied_input(const weft_launch* l, uint32_t, std::span<char> bytes) {
  if (l->plan->call->n_inputs == 0 || !l->inputs[0]) return;
  const auto from = bytes_of(l->inputs[0]);
  for (size_t i = 0; !from.empty() && i < bytes.size(); ++i) bytes[i] = from[i % from.size()];
}

void shifted_by_one(const weft_launch* l, uint32_t k, std::span<char> bytes) {
  const size_t one = byte_size(out_of(l, k).dtype());
  std::rotate(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(one), bytes.end());
}

// Returns the previous result: a cache keyed by the kernel, not by the data.
class StaleOutput : public Mirrored {
 public:
  using Mirrored::Mirrored;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    auto& kept = first_[l->plan];
    const auto out = bytes_of(l->outputs[0]);
    if (kept.size() == out.size() && !out.empty()) {
      std::memcpy(out.data(), kept.data(), kept.size());
      return WEFT_OK;
    }
    const weft_code code = Mirrored::launch(l, e);
    kept.assign(out.begin(), out.end());
    return code;
  }

 private:
  std::map<const weft_plan*, std::vector<char>> first_;
};

// A vector loop without its tail.
class PartialOutput : public Mirrored {
 public:
  using Mirrored::Mirrored;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    const auto out = bytes_of(l->outputs[0]);
    const size_t tail = out_of(l).size() > 1 ? byte_size(out_of(l).dtype()) : 0;
    const std::vector<char> before(out.end() - static_cast<std::ptrdiff_t>(tail), out.end());
    const weft_code code = Mirrored::launch(l, e);
    std::memcpy(out.data() + out.size() - tail, before.data(), tail);
    return code;
  }
};

// The remainder of a loop of eight is computed once for one size and then reused.
void wrong_at_one_size(const weft_launch* l, uint32_t k, std::span<char> bytes) {
  if (out_of(l, k).size() == 17) bytes[bytes.size() - 1] ^= 0x40;
}

// Wrong after many calls.
class WrongOnTheThirdCall : public SpoilsOutput {
 public:
  using SpoilsOutput::SpoilsOutput;

 private:
  void spoil(const weft_launch* l, uint32_t, std::span<char> bytes) override {
    if (++calls_[l->plan] == 3) bytes[0] ^= 0x10;
  }
  std::map<const weft_plan*, int> calls_;
};

// The order of additions depends on the number of rows: row 0 of three differs from row 0 alone.
void wrong_in_a_batch(const weft_launch* l, uint32_t k, std::span<char> bytes) {
  const auto out = out_of(l, k);
  if (out.rank() >= 2 && out.dim(0) > 2 && out.dtype() == DType::f32) bytes[0] ^= 1;
}

// The same, though batch invariance is asked for: as if any level would do.
void forgets_the_level(const weft_launch* l, uint32_t k, std::span<char> bytes) {
  if (l->plan->call->determinism >= WEFT_DETERMINISM_BATCH) wrong_in_a_batch(l, k, bytes);
}

// Floats are truncated to a half's precision inside: fast, but not promised.
void lower_precision(const weft_launch* l, uint32_t k, std::span<char> bytes) {
  if (out_of(l, k).dtype() != DType::f32) return;
  for (size_t at = 0; at < bytes.size(); at += 4) bytes[at] = 0, bytes[at + 1] &= '\xc0';
}

// The last bit changes from call to call, as atomic additions do.
class ChangesFromRunToRun : public SpoilsOutput {
 public:
  using SpoilsOutput::SpoilsOutput;

 private:
  void spoil(const weft_launch* l, uint32_t k, std::span<char> bytes) override {
    const DType t = out_of(l, k).dtype();
    if ((t == DType::f32 || t == DType::f64) && ++calls_ % 2) bytes[0] ^= 1;
  }
  int calls_ = 0;
};

// Swaps the operands of a difference if the second is broadcast.
class SwapsOperands : public Mirrored {
 public:
  using Mirrored::Mirrored;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    if (op_of(l) != "sub" && op_of(l) != "div") return Mirrored::launch(l, e);
    if (backend::TensorView(l->inputs[0]).size() == backend::TensorView(l->inputs[1]).size())
      return Mirrored::launch(l, e);
    const weft_code code = Mirrored::launch(l, e);
    if (code == WEFT_OK && op_of(l) == "sub" && out_of(l).dtype() == DType::f32)
      for (int64_t i = 0; i < out_of(l).size(); ++i) out_of(l).data<float>()[i] *= -1;
    return code;
  }
};

// Non-finite values become the largest number.
void loses_infinities(const weft_launch* l, uint32_t k, std::span<char>) {
  if (out_of(l, k).dtype() != DType::f32) return;
  for (int64_t i = 0; i < out_of(l, k).size(); ++i)
    if (float& v = out_of(l, k).data<float>()[i]; std::isinf(v))
      v = std::copysign(std::numeric_limits<float>::max(), v);
}

// NaN becomes zero.
void loses_nans(const weft_launch* l, uint32_t k, std::span<char>) {
  if (out_of(l, k).dtype() != DType::f32) return;
  for (int64_t i = 0; i < out_of(l, k).size(); ++i)
    if (float& v = out_of(l, k).data<float>()[i]; std::isnan(v)) v = 0;
}

// Denormals are flushed, without a word in `numerics`.
void flushes_denormals(const weft_launch* l, uint32_t k, std::span<char>) {
  if (out_of(l, k).dtype() != DType::f32) return;
  for (int64_t i = 0; i < out_of(l, k).size(); ++i)
    if (float& v = out_of(l, k).data<float>()[i]; std::fpclassify(v) == FP_SUBNORMAL)
      v = std::copysign(0.f, v);
}

// A polynomial that adds x to a multiple of itself: -0 + 0 is 0.
void loses_the_sign_of_zero(const weft_launch* l, uint32_t k, std::span<char>) {
  if (out_of(l, k).dtype() != DType::f32) return;
  for (int64_t i = 0; i < out_of(l, k).size(); ++i)
    if (float& v = out_of(l, k).data<float>()[i]; v == 0) v = 0;
}

// Sums only a block of 1024.
void wrong_in_long_rows(const weft_launch* l, uint32_t, std::span<char> bytes) {
  if (op_of(l) == "sum" && backend::TensorView(l->inputs[0]).size() > 1024) bytes[bytes.size() - 1] ^= 0x40;
}

// A grid has at most 65,535 blocks one way, and a row is a block.
void wrong_in_many_rows(const weft_launch* l, uint32_t k, std::span<char> bytes) {
  if (out_of(l, k).rank() > 1 && out_of(l, k).dim(0) > 65535) bytes[bytes.size() - 1] ^= 0x40;
}

constexpr Liar kAnswersLiars[] = {
    {"liar_zero", "reference", "every result is zero", "ops/add", make_liar<Spoils<zero>>},
    {"liar_constant", "reference", "the first element everywhere", "ops/add", make_liar<Spoils<constant>>},
    {"liar_copied_input", "reference", "gives an operand back", "ops/mul", make_liar<Spoils<copied_input>>},
    {"liar_shifted_by_one", "reference", "every element one place off", "ops/add",
     make_liar<Spoils<shifted_by_one>>},
    {"liar_stale_output", "reference", "gives the result of the first launch again", "follows_its_data",
     make_liar<StaleOutput>},
    {"liar_partial_output", "reference", "leaves the last element unwritten", "writes_every_element",
     make_liar<PartialOutput>},
    {"liar_wrong_at_one_size", "reference", "wrong for results of 17 elements", "edges/add",
     make_liar<Spoils<wrong_at_one_size>>},
    {"liar_wrong_in_long_rows", "reference", "sums no more than 1,024 numbers", "edges/sum",
     make_liar<Spoils<wrong_in_long_rows>>},
    {"liar_wrong_in_many_rows", "reference", "wrong for more than 65,535 rows", "edges/exp",
     make_liar<Spoils<wrong_in_many_rows>>},
    {"liar_wrong_on_the_third_call", "reference", "wrong when a plan runs for the third time",
     "gives_the_same_bits", make_liar<WrongOnTheThirdCall>},
    {"liar_wrong_in_a_batch", "reference", "other bits for a row among many", "rows_stand_alone",
     make_liar<Spoils<wrong_in_a_batch>>},
    {"liar_forgets_the_level", "reference", "other bits for a row among many where equal ones are asked for",
     "rows_stand_alone", make_liar<Spoils<forgets_the_level>>},
    {"liar_lower_precision", "reference", "f32 with ten bits", "ops/exp", make_liar<Spoils<lower_precision>>},
    {"liar_changes_from_run_to_run", "reference", "the last bit flickers", "gives_the_same_bits",
     make_liar<ChangesFromRunToRun>},
    {"liar_swaps_operands", "reference", "b - a where b is broadcast", "ops/sub", make_liar<SwapsOperands>},
    {"liar_loses_infinities", "reference", "infinities become the largest number", "ops/exp",
     make_liar<Spoils<loses_infinities>>},
    {"liar_loses_nans", "reference", "NaN becomes zero", "ops/maximum", make_liar<Spoils<loses_nans>>},
    {"liar_flushes_denormals", "reference", "the smallest numbers become zero", "ops/gather",
     make_liar<Spoils<flushes_denormals>>},
    {"liar_loses_the_sign_of_zero", "reference", "-0 becomes 0", "zeros/sin",
     make_liar<Spoils<loses_the_sign_of_zero>>},
};

}  // namespace

Liars answers_liars() { return kAnswersLiars; }

}  // namespace weft::conformance
