#include <cstring>

#include "plan.hpp"

namespace weft::cuda::chains {

namespace {

// The steps of an element as operations on one value, or none where they need more than one other that was
// computed before.
class Operations {
 public:
  explicit Operations(const skinny::Item& item) : item_(item) {}

  std::optional<std::vector<Operation>> read() {
    for (int s = 0; s < item_.n_steps && fits_; ++s)
      if (item_.steps[s].code >= StepCode::add)
        compute(s);
      else if (result_of(s))
        load(s);  // what is a result and nothing else
    if (!fits_ || all_.size() > kMostSteps) return std::nullopt;
    return std::move(all_);
  }

 private:
  static bool takes_two(StepCode c) { return c >= StepCode::add && c <= StepCode::larger; }
  uint8_t result_of(int step) const {
    for (int r = 0; r < item_.n_results; ++r)
      if (item_.result_steps[r] == step) return static_cast<uint8_t>(r + 1);
    return 0;
  }
  Other other(int step, float& number) {
    const ProductStep& s = item_.steps[step];
    switch (s.code) {
      case StepCode::product: return s.a ? Other::second_product : Other::first_product;
      case StepCode::element:
      case StepCode::column: return static_cast<Other>(static_cast<int>(Other::operand) + s.a);
      case StepCode::number: number = rounded_number(s); return Other::number;
      default: break;
    }
    if (step == at_hand_) return Other::itself;
    if (kept_ < 0) keep(step);
    fits_ = fits_ && kept_ == step;
    return Other::kept;
  }
  float rounded_number(const ProductStep& s) {
    uint32_t bits;
    memcpy(&bits, &s.number, sizeof bits);
    if (s.rounded_to == Format::bf16) bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    fits_ = fits_ && s.rounded_to != Format::f16 && s.number == s.number;
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
  }
  void keep(int step) {
    for (size_t i = 0; i < all_.size(); ++i)
      if (steps_[i] == step) all_[i].keeps = true, kept_ = step;
  }
  void add(Operation o, int step) { all_.push_back(o), steps_.push_back(step), at_hand_ = step; }
  void load(int step) {
    Operation o{.code = StepCode::convert, .rounded_to = Format::f32, .result = result_of(step), .number = 0};
    o.other = other(step, o.number);
    add(o, step);
  }
  void compute(int step) {
    const ProductStep& s = item_.steps[step];
    const bool two = takes_two(s.code);
    if (s.a != at_hand_ && !(two && s.b == at_hand_)) load_other(s.a);
    Operation o{.code = s.code, .rounded_to = s.rounded_to, .result = result_of(step), .number = 0};
    o.reversed = two && s.a != at_hand_;
    o.other = two ? other(o.reversed ? s.a : s.b, o.number) : Other::itself;
    if (s.code == StepCode::convert) fits_ = fits_ && s.a == at_hand_;
    add(o, step);
  }
  // What is at hand without being a result.
  void load_other(int step) {
    Operation o{.code = StepCode::convert, .rounded_to = Format::f32, .number = 0};
    o.other = other(step, o.number);
    add(o, step);
  }

  const skinny::Item& item_;
  std::vector<Operation> all_;
  std::vector<int> steps_;  // whose values they give
  int at_hand_ = -1, kept_ = -1;
  bool fits_ = true;
};

}  // namespace

std::optional<std::vector<Operation>> operations_of(const skinny::Item& item) {
  return Operations(item).read();
}

}  // namespace weft::cuda::chains
