#include "backends/onednn/tail.h"

#include <algorithm>

#include "weft/shared/walk.hpp"

namespace weft::onednn {

using namespace weft::backend;

namespace {

/// A value of the body: a sum of inputs, and of the convolution where `product` says so.
struct Sum {
  std::vector<int64_t> inputs;
  bool product = false, relu = false, zero = false;
};

class Reader {
 public:
  explicit Reader(const weft_region& r) : r_(r), is_(r.n_values) {
    for (uint32_t i = 0; i < r.n_inputs; ++i) is_[i] = Sum{.inputs = {i}};
  }

  std::optional<ConvBody> read(std::string& why) {
    for (uint32_t i = 0; i < r_.n_values; ++i)
      if (TypeView(r_.values[i]).known_dtype() != DType::f32)
        return why = "computes bodies of f32 only", std::nullopt;
    for (uint32_t s = 0; s < r_.n_steps; ++s)
      if (!step(*r_.steps[s]))
        return why = "the body is no convolution with channels last, a sum and relu", std::nullopt;
    const auto& result = is_[r_.outputs[0]];
    if (!body_.conv || !result || !result->product || dims(r_.outputs[0]) != body_.y)
      return why = "the body's result is not that of its convolution", std::nullopt;
    body_.tail.relu = result->relu;
    for (const int64_t i : result->inputs) {
      const auto d = dims(static_cast<uint32_t>(i));
      const bool row = shared::product(d) == body_.y.back() && !d.empty() && d.back() == body_.y.back();
      if (!row && d != body_.y) return why = "the body adds a part of another shape", std::nullopt;
      (row ? body_.tail.rows : body_.tail.whole).push_back(i);
    }
    return body_;
  }

 private:
  std::vector<int64_t> dims(uint32_t value) const {
    const auto d = TypeView(r_.values[value]).max();
    return {d.begin(), d.end()};
  }

  // The operand of a permute that moves the channels of x to the front, or those of y to the end.
  bool permute(const OpCall& c, const weft_step& s) {
    const auto axes = c.attr("axes").ints();
    const auto rank = static_cast<int64_t>(axes.size());
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t first = d == 0 ? 0 : d == 1 ? rank - 1 : d - 1;
      const int64_t last = d == 0 ? 0 : d == rank - 1 ? 1 : d + 1;
      if (axes[d] != (body_.conv ? last : first)) return false;
    }
    if (!body_.conv) return first_ = s.outputs[0], body_.x = s.inputs[0], s.inputs[0] < r_.n_inputs;
    if (s.inputs[0] != made_ || !body_.y.empty()) return false;
    body_.y = dims(s.outputs[0]);
    is_[s.outputs[0]] = Sum{.product = true};
    return true;
  }

  bool add(const Sum& a, const Sum& b, std::optional<Sum>& to) {
    if (a.relu || b.relu || a.zero || b.zero || (a.product && b.product)) return false;
    to = Sum{.inputs = a.inputs, .product = a.product || b.product};
    to->inputs.insert(to->inputs.end(), b.inputs.begin(), b.inputs.end());
    return true;
  }

  bool step(const weft_step& s) {
    const OpCall c(s.call);
    const uint32_t to = s.outputs[0];
    if (c.n_outputs() != 1 || c.accumulate() || c.updates()) return false;
    for (int64_t i = 0; i < c.n_inputs(); ++i)
      if (s.inputs[i] >= r_.n_values) return false;  // it is absent
    if (c.op() == "permute") return permute(c, s);
    if (c.op() == "conv") {
      if (body_.conv || s.inputs[0] != first_ || s.inputs[1] >= r_.n_inputs) return false;
      body_.conv = s.call, body_.filters = s.inputs[1], made_ = to;
      return true;
    }
    if (c.op() == "full") return is_[to] = Sum{.zero = true}, c.attr("value").real() == 0 && dims(to).empty();
    if (c.op() == "reshape") {
      const auto from = dims(s.inputs[0]), into = dims(to);
      return is_[to] = is_[s.inputs[0]],
             is_[to] && !from.empty() && !into.empty() && from.back() == into.back();
    }
    if (c.n_inputs() != 2 || !is_[s.inputs[0]] || !is_[s.inputs[1]]) return false;
    const Sum a = *is_[s.inputs[0]], b = *is_[s.inputs[1]];
    if (c.op() == "add") return add(a, b, is_[to]);
    if (c.op() != "maximum" || a.zero == b.zero) return false;
    is_[to] = a.zero ? b : a;
    return std::exchange(is_[to]->relu, true), is_[to]->product;
  }

  const weft_region& r_;
  std::vector<std::optional<Sum>> is_;  // by value
  uint32_t first_ = UINT32_MAX, made_ = UINT32_MAX;
  ConvBody body_;
};

}  // namespace

std::optional<ConvBody> conv_body(const OpCall& call, std::string& why) {
  const weft_region* r = call.region();
  if (!r || call.n_outputs() != 1) return why = "wants a body with one result", std::nullopt;
  return Reader(*r).read(why);
}

// Place by place, so that a place is read once however many parts are added.
void finish(const Tail& tail, const Launch& l, int64_t first, int64_t count, int64_t channels) {
  float* y = l.output(0).data<float>() + first * channels;
  for (int64_t p = 0; p < count; ++p, y += channels) {
    for (const int64_t i : tail.rows) {
      const float* row = l.input(i).data<float>();
      for (int64_t c = 0; c < channels; ++c) y[c] += row[c];
    }
    for (const int64_t i : tail.whole) {
      const float* more = l.input(i).data<float>() + (first + p) * channels;
      for (int64_t c = 0; c < channels; ++c) y[c] += more[c];
    }
    if (tail.relu)
      for (int64_t c = 0; c < channels; ++c) y[c] = y[c] <= 0 ? 0 : y[c];  // a NaN stays
  }
}

}  // namespace weft::onednn
