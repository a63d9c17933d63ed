#include "matmul_body.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace weft::cuda::hopper {

using namespace backend;

namespace {

int64_t elements(std::span<const int64_t> sizes) {
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  return n;
}

// What a body computes is known by its values at some points: p, which is an element of the product with its
// bias, and the element of another operand at the same place.
constexpr std::array kProducts = {-120., -30., -7., -4.5, -3., -2.,  -1.25, -0.7, -0.2, -1e-3,
                                  0.,    1e-3, 0.2, 0.8,  1.,  1.75, 2.5,   4.,   6.5,  90.};
constexpr std::array kOthers = {0.3, -2., 1.,   -0.5, 5.,   -110., -1e-3, 3.5, -3.,  0.,
                                2.,  70., -1.5, 0.9,  -0.1, 1.3,   -8.,   7.,  0.05, -0.8};
constexpr size_t kPoints = kProducts.size();
static_assert(kOthers.size() == kPoints);
using Points = std::array<double, kPoints>;

template <class F>
Points at_points(F f) {
  Points y{};
  for (size_t i = 0; i < kPoints; ++i) y[i] = f(kProducts[i], kOthers[i]);
  return y;
}
bool are_equal(const Points& x, const Points& y) {
  for (size_t i = 0; i < kPoints; ++i)
    if (!(std::abs(x[i] - y[i]) <= 1e-6 * (std::abs(x[i]) + std::abs(y[i])) + 1e-9)) return false;
  return true;
}

constexpr double kCube = 0.044715;
const double kScale = std::sqrt(2 / std::acos(-1.0));
double tanh_of(double x) { return std::tanh(kScale * (x + kCube * x * x * x)); }
double gelu(double x) { return x * 0.5 * (1 + tanh_of(x)); }
double gelu_slope(double x) {
  const double s = tanh_of(x);
  return 0.5 * (1 + s + x * (1 - s * s) * kScale * (1 + 3 * kCube * x * x));
}

/// Reads a body step by step.
class Reader {
 public:
  explicit Reader(const OpCall& c) : c_(c), body_(*c.region()), is_(body_.n_values) {
    for (uint32_t i = 0; i < body_.n_inputs; ++i) is_[i] = {Kind::operand, static_cast<int>(i), {}};
  }

  std::optional<MatmulBody> read() {
    for (uint32_t i = 0; i < body_.n_steps; ++i)
      if (!follows(*body_.steps[i])) return {};
    if (found_.a < 0 || !results()) return {};
    return found_;
  }

 private:
  enum class Kind { other, operand, product, number, points };
  struct Value {
    Kind kind = Kind::other;
    int input = -1;  // of an operand
    Points at{};     // of all but operands
  };
  std::span<const int64_t> sizes(uint32_t value) const { return TypeView(body_.values[value]).max(); }

  bool follows(const weft_step& s) {
    const OpCall c(s.call);
    if (c.n_outputs() != 1 || c.accumulate() || c.updates()) return false;
    for (int64_t i = 0; i < c.n_inputs(); ++i)
      if (s.inputs[i] >= body_.n_values) return false;
    Value& to = is_[s.outputs[0]];
    if (c.op() == "matmul") return multiplies(c, s);
    if (c.op() == "full") {
      const double value = c.attr("value").real() * static_cast<double>(c.attr("times").integer(1));
      to = {Kind::number, -1, at_points([&](double, double) { return value; })};
      return elements(sizes(s.outputs[0])) == 1;
    }
    if (c.op() == "cast" || c.op() == "reshape") return to = is_[s.inputs[0]], true;
    return c.n_inputs() <= 2 && computes(c, s);
  }

  bool multiplies(const OpCall& c, const weft_step& s) {
    const Value a = is_[s.inputs[0]], b = is_[s.inputs[1]];
    if (found_.a >= 0 || a.kind != Kind::operand || b.kind != Kind::operand) return false;
    if (c.attr("transpose_a").integer() || sizes(s.inputs[1]).size() != 2) return false;
    found_.a = a.input, found_.b = b.input, found_.transpose_b = c.attr("transpose_b").integer();
    is_[s.outputs[0]] = {Kind::product, -1, at_points([](double p, double) { return p; })};
    product_ = s.outputs[0];
    return true;
  }

  // An operand of a step on elements of the product: a number, the bias, or the other matrix.
  bool operand(uint32_t value, Points* at) {
    const Value& v = is_[value];
    if (v.kind == Kind::operand) {
      if (found_.a < 0 || elements(sizes(value)) != elements(sizes(product_))) return false;
      if (found_.other >= 0 && found_.other != v.input) return false;
      found_.other = v.input, *at = at_points([](double, double o) { return o; });
      return true;
    }
    *at = v.at;
    return v.kind != Kind::other;
  }
  bool is_bias(uint32_t product, uint32_t value) const {
    const auto columns = sizes(product_).back();
    return is_[product].kind == Kind::product && is_[value].kind == Kind::operand && found_.bias < 0 &&
           elements(sizes(value)) == columns && sizes(value).back() == columns &&
           elements(sizes(product_)) != columns;
  }
  bool computes(const OpCall& c, const weft_step& s) {
    Value& to = is_[s.outputs[0]];
    const uint32_t first = s.inputs[0], second = s.inputs[c.n_inputs() - 1];
    if (found_.a >= 0 && c.op() == "add" && (is_bias(first, second) || is_bias(second, first))) {
      const bool after = is_bias(first, second);
      found_.bias = is_[after ? second : first].input;
      to = {Kind::points, -1, is_[after ? first : second].at};
      return true;
    }
    Points x, y;
    if (!operand(first, &x) || !operand(second, &y)) return false;
    to = {Kind::points, -1, {}};
    for (size_t i = 0; i < kPoints; ++i)
      if (!computed(c.op(), x[i], y[i], &to.at[i])) return false;
    return true;
  }
  static bool computed(std::string_view op, double x, double y, double* to) {
    if (op == "add") return *to = x + y, true;
    if (op == "sub") return *to = x - y, true;
    if (op == "mul") return *to = x * y, true;
    if (op == "div") return *to = x / y, true;
    if (op == "minimum") return *to = std::min(x, y), true;
    if (op == "maximum") return *to = std::max(x, y), true;
    if (op == "tanh") return *to = std::tanh(x), true;
    return false;
  }

  // Which result is which.
  bool results() {
    const Points p = at_points([](double product, double) { return product; });
    const auto is = [&](int64_t output, auto f) {
      const Value& v = is_[body_.outputs[output]];
      return v.kind != Kind::other && v.kind != Kind::operand && are_equal(v.at, at_points(f));
    };
    const auto sum = [](double product, double o) { return product + o; };
    const auto slope = [](double product, double o) { return product * gelu_slope(o); };
    const auto of_product = [](double product, double) { return gelu(product); };
    if (c_.n_outputs() == 2) {
      found_.c = are_equal(is_[body_.outputs[0]].at, p) ? 0 : 1, found_.second = 1 - found_.c;
      found_.ending = Ending::gelu;
      return found_.other < 0 &&
             is(found_.c, [](double product, double) { return product; }) && is(found_.second, of_product);
    }
    found_.c = 0;
    found_.ending = is(0, sum) ? Ending::sum : is(0, slope) ? Ending::gelu_slope : Ending::plain;
    return c_.n_outputs() == 1 && found_.other >= 0 && found_.ending != Ending::plain;
  }

  const OpCall c_;
  const weft_region& body_;
  std::vector<Value> is_;
  uint32_t product_ = 0;
  MatmulBody found_;
};

}  // namespace

std::optional<MatmulBody> matmul_body(const OpCall& call) {
  if (!call.region()) return {};
  return Reader(call).read();
}

}  // namespace weft::cuda::hopper
