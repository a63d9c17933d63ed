#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/shared/walk.hpp"

// Bodies of calls that are a convolution, and the sum and relu that follow it.
namespace weft::shared {

/// What is added to the result of a convolution, by positions of the call's inputs: either, or their sum.
struct Addend {
  int64_t row = -1;    ///< one number for each channel
  int64_t whole = -1;  ///< a tensor as large as the result
};
/// relu(conv(x, filters) + addends), which are added in this order, or without relu; inputs by position.
struct ConvBody {
  int64_t x = 0, filters = 1;
  const weft_call* conv = nullptr;  ///< the step, whose attributes count
  bool channels_last = false;       ///< of x, whole addends and the result
  std::vector<int64_t> y;           ///< the sizes of the result, in its order
  std::vector<Addend> addends;
  bool relu = false;

  int64_t channels() const { return channels_last ? y.back() : y[1]; }
};

namespace detail {

/// Reads a body step by step; each value becomes a sum.
class ConvReader {
 public:
  explicit ConvReader(const weft_region& r) : r_(r), is_(r.n_values) {
    for (uint32_t i = 0; i < r.n_inputs; ++i) is_[i] = Sum{.parts = {{i, dims(i)}}};
  }

  std::optional<ConvBody> read(std::string& why) {
    for (uint32_t i = 0; i < r_.n_values; ++i)
      if (TypeView(r_.values[i]).known_dtype() != DType::f32)
        return why = "computes bodies of f32 only", std::nullopt;
    for (uint32_t s = 0; s < r_.n_steps; ++s)
      if (!step(*r_.steps[s])) return why = "the body is no convolution, a sum and relu", std::nullopt;
    const auto& result = is_[r_.outputs[0]];
    if (!result || !result->product || dims(r_.outputs[0]) != body_.y)
      return why = "the body's result is not that of its convolution", std::nullopt;
    body_.relu = result->relu;
    for (const Parts& parts : result->addends) {
      Addend& addend = body_.addends.emplace_back();
      for (const auto& [input, sizes] : parts) {
        int64_t& to = is_row(sizes) ? addend.row : addend.whole;
        if (to >= 0 || (!is_row(sizes) && sizes != body_.y))
          return why = "the body adds a part of another shape, or two of one", std::nullopt;
        to = input;
      }
    }
    return body_;
  }

 private:
  using Sizes = std::vector<int64_t>;
  using Parts = std::vector<std::pair<int64_t, Sizes>>;  // inputs, and their sizes where they are added
  /// A value of the body: a sum of inputs, or of the convolution and such sums.
  struct Sum {
    Parts parts = {};
    std::vector<Parts> addends = {};
    bool product = false, relu = false, zero = false;
  };

  Sizes dims(uint32_t value) const {
    const auto d = TypeView(r_.values[value]).max();
    return {d.begin(), d.end()};
  }
  // Does it meet y with one number for each channel?
  bool is_row(const Sizes& d) const {
    const size_t from_end = body_.channels_last ? 1 : body_.y.size() - 1;
    return shared::product(d) == body_.channels() &&
           (body_.channels() == 1 || (d.size() >= from_end && d[d.size() - from_end] == body_.channels()));
  }

  // A permute that moves the channels of x to the front, or those of y to the end.
  bool permute(const OpCall& c, const weft_step& s) {
    const auto axes = c.attr("axes").ints();
    const auto rank = static_cast<int64_t>(axes.size());
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t first = d == 0 ? 0 : d == 1 ? rank - 1 : d - 1;
      const int64_t last = d == 0 ? 0 : d == rank - 1 ? 1 : d + 1;
      if (axes[static_cast<size_t>(d)] != (body_.conv ? last : first)) return false;
    }
    if (!body_.conv) {
      if (body_.channels_last || s.inputs[0] >= r_.n_inputs) return false;
      body_.channels_last = true, body_.x = s.inputs[0], turned_ = s.outputs[0];
      return true;
    }
    return s.inputs[0] == made_ && body_.y.empty() && makes(s.outputs[0]);
  }
  bool conv(const OpCall& c, const weft_step& s) {
    if (body_.conv || c.n_inputs() != 2 || s.inputs[1] >= r_.n_inputs) return false;
    body_.conv = s.call, body_.filters = s.inputs[1], made_ = s.outputs[0];
    if (body_.channels_last) return s.inputs[0] == turned_;
    body_.x = s.inputs[0];
    return s.inputs[0] < r_.n_inputs && makes(made_);
  }
  bool makes(uint32_t value) {
    body_.y = dims(value), is_[value] = Sum{.product = true};
    return true;
  }

  static bool add(const Sum& a, const Sum& b, std::optional<Sum>& to) {
    if (a.relu || b.relu || a.zero || b.zero || (a.product && b.product)) return false;
    const Sum& other = a.product ? b : a;
    to = a.product ? a : b;
    if (to->product) return to->addends.push_back(other.parts), true;
    to->parts.insert(to->parts.end(), other.parts.begin(), other.parts.end());
    return to->parts.size() <= 2;  // sums of more are not worth a kernel's while
  }
  static bool relu(const Sum& a, const Sum& b, std::optional<Sum>& to) {
    if (a.zero == b.zero) return false;
    to = a.zero ? b : a;
    return std::exchange(to->relu, true), to->product;
  }
  // Other sizes of an input; those of a sum are given by its parts.
  bool reshape(const std::optional<Sum>& from, uint32_t to) {
    if (!from || from->product || from->zero || from->parts.size() != 1) return false;
    return is_[to] = Sum{.parts = {{from->parts[0].first, dims(to)}}}, true;
  }

  bool step(const weft_step& s) {
    const OpCall c(s.call);
    const uint32_t to = s.outputs[0];
    if (c.n_outputs() != 1 || c.accumulate() || c.updates()) return false;
    for (int64_t i = 0; i < c.n_inputs(); ++i)
      if (s.inputs[i] >= r_.n_values) return false;  // it is absent
    if (c.op() == "permute") return permute(c, s);
    if (c.op() == "conv") return conv(c, s);
    if (c.op() == "full") return is_[to] = Sum{.zero = true}, c.attr("value").real() == 0 && dims(to).empty();
    if (c.op() == "reshape") return reshape(is_[s.inputs[0]], to);
    if (c.n_inputs() != 2 || !is_[s.inputs[0]] || !is_[s.inputs[1]]) return false;
    const Sum a = *is_[s.inputs[0]], b = *is_[s.inputs[1]];
    if (c.op() == "add") return add(a, b, is_[to]);
    return c.op() == "maximum" && relu(a, b, is_[to]);
  }

  const weft_region& r_;
  std::vector<std::optional<Sum>> is_;                // by value
  uint32_t turned_ = UINT32_MAX, made_ = UINT32_MAX;  // x with channels first, what the convolution makes
  ConvBody body_;
};

}  // namespace detail

/// What a body of f32 computes, or why it is no such convolution.
inline std::optional<ConvBody> conv_body(const OpCall& call, std::string& why) {
  const weft_region* r = call.region();
  if (!r || call.n_outputs() != 1) return why = "wants a body with one result", std::nullopt;
  return detail::ConvReader(*r).read(why);
}

}  // namespace weft::shared
