#include <algorithm>
#include <map>
#include <set>

#include "skinny.hpp"

// Reads a call's body, step by step, as products and what is computed from each of their elements.
namespace weft::cuda {

using namespace backend;

namespace {

int64_t count_of(std::span<const int64_t> sizes) {
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  return n;
}

std::optional<Format> format_of(TypeView t) {
  switch (t.dtype()) {
    case DType::f32: return Format::f32;
    case DType::f16: return Format::f16;
    case DType::bf16: return Format::bf16;
    default: return std::nullopt;
  }
}

std::optional<StepCode> code_of(std::string_view op) {
  static const std::map<std::string_view, StepCode> codes = {
      {"add", StepCode::add},         {"sub", StepCode::subtract},    {"mul", StepCode::multiply},
      {"div", StepCode::divide},      {"minimum", StepCode::smaller}, {"maximum", StepCode::larger},
      {"exp", StepCode::exponential}, {"tanh", StepCode::tangent},    {"erf", StepCode::error_function},
      {"sqrt", StepCode::root},       {"cast", StepCode::convert}};
  const auto at = codes.find(op);
  return at == codes.end() ? std::nullopt : std::optional(at->second);
}

class Reader {
 public:
  explicit Reader(const OpCall& c) : c_(c), r_(*c.region()), input_(r_.n_values, -1), step_(r_.n_values, -1) {
    for (uint32_t i = 0; i < r_.n_inputs; ++i) input_[i] = static_cast<int>(i);
  }

  std::optional<SkinnyCall> read(std::string& why) {
    for (uint32_t s = 0; s < r_.n_steps && why_.empty(); ++s) step(*r_.steps[s]);
    if (why_.empty() && weights_.empty()) why_ = "the body has no product";
    if (why_.empty()) split();
    if (!why_.empty()) return why = why_, std::nullopt;
    return std::move(call_);
  }

 private:
  TypeView type(uint32_t value) const { return TypeView(r_.values[value]); }
  void refuse(std::string_view why) {
    if (why_.empty()) why_ = why;
  }

  // Where a value stands: one element for all, one for each column, or one for each element of a product.
  enum class Place { nowhere, all, column, element };
  Place place_of(std::span<const int64_t> sizes) const {
    const int64_t count = count_of(sizes);
    if (count == call_.rows * call_.n) return Place::element;
    if (count == call_.n && !sizes.empty() && sizes.back() == call_.n) return Place::column;
    return count == 1 ? Place::all : Place::nowhere;
  }

  int add(ProductStep s) {
    if (steps_.size() == 255) refuse("the body is too long");
    steps_.push_back(s);
    return static_cast<int>(steps_.size()) - 1;
  }
  // The step that has the value, for a result of these sizes.
  int operand(uint32_t value, std::span<const int64_t> sizes) {
    const auto own = type(value).max();
    const Place place = place_of(own);
    const bool fits = place == Place::all || (place == Place::element && std::ranges::equal(own, sizes)) ||
                      (place == Place::column && !sizes.empty() && sizes.back() == call_.n);
    if (!fits) return refuse("an operand has other sizes than the product"), 0;
    if (step_[value] >= 0) return step_[value];
    const auto format = format_of(type(static_cast<uint32_t>(input_[value])));
    if (!format || place == Place::all) return refuse("an operand is no row of the result"), 0;
    const auto at = std::ranges::find(operands_, input_[value]);
    const auto number = static_cast<uint8_t>(at - operands_.begin());
    if (at == operands_.end()) operands_.push_back(input_[value]), operand_formats_.push_back(*format);
    return step_[value] = add(
               {place == Place::column ? StepCode::column : StepCode::element, number, 0, Format::f32, 0});
  }

  // Operands of a product are inputs, converted to f32 at most.
  void product(const OpCall& c, const weft_step& s) {
    const int x = input_[s.inputs[0]], weight = input_[s.inputs[1]];
    const auto of_x = type(s.inputs[0]).max(), of_w = type(s.inputs[1]).max();
    if (c.attr("transpose_a").integer() || !c.attr("transpose_b").integer() || of_w.size() != 2 || x < 0 ||
        weight < 0 || of_x.empty())
      return refuse("wants products of an input with a transposed weight");
    const int64_t n = of_w[0], k = of_w[1], rows = k ? count_of(of_x) / k : 0;
    const auto of_input = type(static_cast<uint32_t>(weight)).max();
    if (!std::ranges::equal(of_input, of_w)) return refuse("a weight is seen with other sizes");
    if (weights_.empty())
      call_.x = x, call_.rows = rows, call_.n = n, call_.k = k, call_.are_constant = true;
    else if (call_.x != x || call_.rows != rows || call_.n != n || call_.k != k)
      return refuse("wants products of one x with weights of one size");
    if (weights_.size() == 8) return refuse("too many products");
    if (!c_.input(weight).constant()) call_.are_constant = false;
    weights_.push_back(weight);
    step_[s.outputs[0]] =
        add({StepCode::product, static_cast<uint8_t>(weights_.size() - 1), 0, rounding(s.outputs[0]), 0});
  }

  Format rounding(uint32_t value) {
    const auto format = format_of(type(value));
    if (!format) refuse("computes on f32, f16 and bf16");
    return format.value_or(Format::f32);
  }

  void step(const weft_step& s) {
    const OpCall c(s.call);
    const uint32_t to = s.outputs[0];
    if (c.n_outputs() != 1 || c.accumulate() || c.updates()) return refuse("updates an operand");
    for (int64_t i = 0; i < c.n_inputs(); ++i)
      if (s.inputs[i] >= r_.n_values) return refuse("an operand of a step is missing");
    if (c.op() == "matmul") return product(c, s);
    if (c.op() == "full") {
      const double value = c.attr("value").real() * static_cast<double>(c.attr("times").integer(1));
      if (count_of(type(to).max()) != 1) return refuse("a constant has more than one element");
      step_[to] = add({StepCode::number, 0, 0, rounding(to), static_cast<float>(value)});
      return;
    }
    // An input that is converted or reshaped is the input still.
    const bool widens = c.op() == "cast" && type(to).known_dtype() == DType::f32;
    if ((widens || c.op() == "reshape") && step_[s.inputs[0]] < 0) {
      input_[to] = input_[s.inputs[0]];
      return rounding(s.inputs[0]), void();
    }
    if (c.op() == "reshape") return step_[to] = step_[s.inputs[0]], void();
    elementwise(c, s);
  }

  void elementwise(const OpCall& c, const weft_step& s) {
    const uint32_t to = s.outputs[0];
    const auto code = code_of(c.op());
    // A number that is converted to f32 is what it was.
    if (code == StepCode::convert && step_[s.inputs[0]] >= 0 && rounding(to) == Format::f32)
      return step_[to] = step_[s.inputs[0]], void();
    if (!code || c.n_inputs() > 2) return refuse("has a step that is not computed here");
    if (weights_.empty()) return refuse("computes on operands of the product");
    const auto sizes = type(to).max();
    if (place_of(sizes) == Place::nowhere) return refuse("a step has other sizes than the product");
    int of[2] = {};
    for (int64_t i = 0; i < c.n_inputs(); ++i) of[i] = operand(s.inputs[i], sizes);
    step_[to] = add({*code, static_cast<uint8_t>(of[0]), static_cast<uint8_t>(of[1]), rounding(to), 0});
  }

  // The steps that each result needs; results that need the same product are one part.
  void split() {
    std::vector<std::set<int>> needed;
    std::vector<std::vector<int>> results;
    for (int64_t o = 0; o < c_.n_outputs(); ++o) {
      const uint32_t value = r_.outputs[o];
      if (step_[value] < 0 || place_of(type(value).max()) != Place::element)
        return refuse("a result is no element of a product");
      std::set<int> steps;
      collect(step_[value], steps);
      std::vector<int> all = {static_cast<int>(o)};
      for (size_t i = 0; i < needed.size();) {
        if (!shares_product(needed[i], steps)) {
          ++i;
          continue;
        }
        steps.merge(needed[i]), all.insert(all.end(), results[i].begin(), results[i].end());
        needed.erase(needed.begin() + static_cast<std::ptrdiff_t>(i));
        results.erase(results.begin() + static_cast<std::ptrdiff_t>(i));
      }
      needed.push_back(std::move(steps)), results.push_back(std::move(all));
    }
    for (size_t i = 0; i < needed.size(); ++i) call_.parts.push_back(part(needed[i], results[i]));
  }
  void collect(int at, std::set<int>& steps) const {
    if (!steps.insert(at).second) return;
    const ProductStep& s = steps_[static_cast<size_t>(at)];
    if (s.code < StepCode::add) return;
    collect(s.a, steps);
    if (takes_two(s.code)) collect(s.b, steps);
  }
  bool shares_product(const std::set<int>& some, const std::set<int>& others) const {
    return std::ranges::any_of(some, [&](int s) {
      return steps_[static_cast<size_t>(s)].code == StepCode::product && others.contains(s);
    });
  }

  SkinnyPart part(const std::set<int>& needed, const std::vector<int>& results) {
    SkinnyPart p;
    std::map<int, uint8_t> at;  // of a step, in the part
    const auto own = [](auto& list, int value) {
      const auto found = std::ranges::find(list, value);
      if (found == list.end()) return list.push_back(value), static_cast<uint8_t>(list.size() - 1);
      return static_cast<uint8_t>(found - list.begin());
    };
    std::vector<int> order(needed.begin(), needed.end());
    const auto is_leaf = [&](int i) { return steps_[static_cast<size_t>(i)].code < StepCode::add; };
    p.leaves = static_cast<size_t>(std::ranges::stable_partition(order, is_leaf).begin() - order.begin());
    for (const int i : order) {
      ProductStep s = steps_[static_cast<size_t>(i)];
      if (s.code == StepCode::product) {
        s.a = own(p.weights, weights_[s.a]);
      } else if (s.code == StepCode::element || s.code == StepCode::column) {
        const Format format = operand_formats_[s.a];
        s.a = own(p.operands, operands_[s.a]);
        if (s.a == p.operand_formats.size()) p.operand_formats.push_back(format);
      } else if (s.code >= StepCode::add) {
        s.a = at[s.a], s.b = at[s.b];
      }
      at[i] = static_cast<uint8_t>(p.steps.size());
      p.steps.push_back(s);
    }
    for (const int o : results) {
      p.results.push_back(o);
      p.result_steps.push_back(at[step_[r_.outputs[o]]]);
      p.result_formats.push_back(rounding(r_.outputs[o]));
    }
    fold_logistics(p), fold_conversions(p);
    if (p.weights.empty() || p.weights.size() > kMostProducts || p.operands.size() > kMostOperands ||
        p.results.size() > kMostResults || p.steps.size() > kMostSteps)
      refuse(format("{} products, {} operands, {} results and {} steps are too many for one kernel",
                    p.weights.size(), p.operands.size(), p.results.size(), p.steps.size()));
    return p;
  }

  // 1 / (1 + exp(x * -1)) in f32 becomes one step: finding out what a step is takes longer than computing it.
  static void fold_logistics(SkinnyPart& p) {
    const auto is = [&](uint8_t at, StepCode code) {
      return p.steps[at].code == code && p.steps[at].rounded_to == Format::f32;
    };
    // The operand of step `at` beside a number.
    const auto beside = [&](uint8_t at, StepCode code, float number) -> std::optional<uint8_t> {
      const ProductStep& s = p.steps[at];
      if (!is(at, code)) return std::nullopt;
      for (const auto& [value, other] : {std::pair(s.a, s.b), std::pair(s.b, s.a)})
        if (is(other, StepCode::number) && p.steps[other].number == number) return value;
      return std::nullopt;
    };
    for (ProductStep& s : p.steps) {
      if (s.code != StepCode::divide || !is(s.a, StepCode::number) || p.steps[s.a].number != 1) continue;
      const auto power = beside(s.b, StepCode::add, 1);
      if (!power || !is(*power, StepCode::exponential)) continue;
      if (const auto x = beside(p.steps[*power].a, StepCode::multiply, -1))
        s = {StepCode::logistic, *x, 0, s.rounded_to, 0};
    }
    drop_unread(p);
  }
  static void drop_unread(SkinnyPart& p) {
    for (size_t i = p.steps.size(); i-- > 0;) {
      const auto reads = [&](const ProductStep& s) { return reads_step(s, i); };
      if (std::ranges::any_of(p.steps, reads) || std::ranges::count(p.result_steps, static_cast<int>(i)) > 0)
        continue;
      if (i < p.leaves) --p.leaves;
      drop_step(p, i, 0);
    }
  }
  static bool reads_step(const ProductStep& s, size_t i) {
    return s.code >= StepCode::add && (s.a == i || (s.b == i && takes_two(s.code)));
  }

  // What is only converted is rounded where it is computed.
  static void fold_conversions(SkinnyPart& p) {
    for (size_t i = p.leaves; i < p.steps.size(); ++i) {
      if (p.steps[i].code != StepCode::convert) continue;
      const uint8_t from = p.steps[i].a;
      const auto reads = [&](const ProductStep& s) { return reads_step(s, from); };
      if (p.steps[from].rounded_to != Format::f32 || std::ranges::count_if(p.steps, reads) > 1 ||
          std::ranges::count(p.result_steps, from) > 0)
        continue;
      p.steps[from].rounded_to = p.steps[i].rounded_to;
      drop_step(p, i--, from);
    }
  }
  static bool takes_two(StepCode c) { return c >= StepCode::add && c <= StepCode::larger; }
  // Takes step i away; what read it reads `other`.
  static void drop_step(SkinnyPart& p, size_t i, uint8_t other) {
    const auto moved = [&](auto& at) {
      if (static_cast<size_t>(at) == i) at = other;
      if (static_cast<size_t>(at) > i) --at;
    };
    p.steps.erase(p.steps.begin() + static_cast<std::ptrdiff_t>(i));
    for (ProductStep& s : p.steps)
      if (s.code >= StepCode::add) moved(s.a), moved(s.b);
    for (int& r : p.result_steps) moved(r);
  }

  OpCall c_;
  const weft_region& r_;
  std::string why_;
  SkinnyCall call_;
  std::vector<int> input_, step_;  // by value: which input it is, or which step has it
  std::vector<int> weights_, operands_;
  std::vector<Format> operand_formats_;
  std::vector<ProductStep> steps_;
};

}  // namespace

std::optional<SkinnyCall> skinny_call(const OpCall& c, std::string& why) {
  if (!c.region()) return why = "the call has no body", std::nullopt;
  return Reader(c).read(why);
}

}  // namespace weft::cuda
