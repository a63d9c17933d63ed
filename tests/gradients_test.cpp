#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>

#include "conformance/differences.h"
#include "conformance/inputs.h"
#include "eager/apply.h"
#include "ir/builder.h"
#include "weft/einsum.h"
#include "weft/ops.h"

// Gradients against finite differences in f64: the derivative of a random weighted sum of the results along a
// random direction, through Tensor::backward. The tolerance is that of the difference itself and does not
// grow with the tensors.
namespace weft::conformance::gradients_test {
namespace {

double dot(const Array& a, const Array& b) {
  double s = 0;
  for (size_t i = 0; i < a.v.size(); ++i) s += static_cast<double>(a.v[i] * b.v[i]);
  return s;
}
double norm_of_products(const Array& a, const Array& b) {
  double s = 0;
  for (size_t i = 0; i < a.v.size(); ++i) s += static_cast<double>(a.v[i] * b.v[i] * a.v[i] * b.v[i]);
  return std::sqrt(s);
}
Array random_like(const Array& a, Random& random) {
  Array r = a;
  for (Real& v : r.v) v = random.normal();
  return r;
}
Array moved(const Array& x, const Array& direction, double by) {
  Array y = x;
  for (size_t i = 0; i < y.v.size(); ++i) y.v[i] = static_cast<double>(x.v[i] + by * direction.v[i]);
  return y;
}

/// One case of one op in f64: its value and gradients as functions of the operands.
struct Probe {
  const ir::OpDef& op;
  std::vector<AttrValue> attrs;
  std::vector<Array> inputs;
  Array weights;  // of the elements of output 0

  std::vector<Tensor> leaves(const std::vector<Array>& in, bool grad) const {
    std::vector<Tensor> out;
    for (const auto& a : in) {
      out.push_back(to_tensor(a, "reference"));
      if (grad && is_float(a.dtype)) out.back().requires_grad(true);
    }
    return out;
  }
  Tensor call(const std::vector<Tensor>& in) const {
    std::vector<const Tensor*> pointers;
    for (const auto& t : in) pointers.push_back(&t);
    std::vector<Tensor> out(op.n_outputs);
    eager::apply(op, pointers, attrs, out);
    return out[0];
  }
  double value(const std::vector<Array>& in) const {
    return dot(from_tensor(call(leaves(in, false))), weights);
  }
  std::vector<Tensor> gradients(const std::vector<Array>& in, bool create_graph) const {
    const auto x = leaves(in, true);
    call(x).backward(to_tensor(weights, "reference"), create_graph);
    return x;
  }
};

// The weighted sum is rounded 2^-53 relative to its terms, and that is divided by the step; 2^8 such
// roundings cover every case here. 1e-8 of the norm is left for h^4: (2^-11)^4 = 6e-14 times the fifth
// derivative.
double tolerance(const Slope& s, double scale, double terms) {
  return s.truncation + 1e-8 * scale + 0x1p-45 * terms / kStep;
}
double sum_of_terms(const Probe& p) {
  const Array y = from_tensor(p.call(p.leaves(p.inputs, false)));
  double s = 0;
  for (size_t i = 0; i < y.v.size(); ++i) s += static_cast<double>(std::fabs(y.v[i] * p.weights.v[i]));
  return s;
}

struct Counts {
  int first = 0, second = 0;
};
Counts& counts() {
  static Counts c;
  return c;
}

void check_first(const Probe& p, Random& random) {
  const auto x = p.gradients(p.inputs, false);
  for (size_t i = 0; i < p.inputs.size(); ++i) {
    if (!is_float(p.inputs[i].dtype) || p.inputs[i].v.empty()) continue;
    SCOPED_TRACE(fmt::format("operand {}", p.op.inputs[i]));
    ASSERT_TRUE(x[i].grad()) << "no gradient";
    const Array g = from_tensor(x[i].grad());
    ASSERT_EQ(g.shape, p.inputs[i].shape);
    for (int k = 0; k < 2; ++k) {
      const Array direction = random_like(p.inputs[i], random);
      const Slope s = slope_at_zero(
          [&](double h) {
            auto in = p.inputs;
            in[i] = moved(in[i], direction, h);
            return p.value(in);
          },
          kStep);
      EXPECT_NEAR(dot(g, direction), s.value, tolerance(s, norm_of_products(g, direction), sum_of_terms(p)));
      ++counts().first;
    }
  }
}

// d/dh of <gradient of operand i at x + h v, u> against the gradient of <gradient, u>, taken through the
// recorded gradient. v moves every operand, so that mixed derivatives count.
void check_second(const Probe& p, Random& random) {
  std::vector<Array> v;
  for (const auto& a : p.inputs) v.push_back(random_like(a, random));
  for (size_t i = 0; i < p.inputs.size(); ++i) {
    if (!is_float(p.inputs[i].dtype) || p.inputs[i].v.empty()) continue;
    SCOPED_TRACE(fmt::format("second derivative, operand {}", p.op.inputs[i]));
    const Array u = random_like(p.inputs[i], random);
    const auto x = p.gradients(p.inputs, true);
    const Tensor g = x[i].grad();
    double terms = 0, got = 0, scale = 0;
    for (const Real t : from_tensor(g).v) terms += std::fabs(static_cast<double>(t));
    const auto along = [&](double h) {
      auto in = p.inputs;
      for (size_t j = 0; j < in.size(); ++j)
        if (is_float(in[j].dtype)) in[j] = moved(in[j], v[j], h);
      return dot(from_tensor(p.gradients(in, false)[i].grad()), u);
    };
    const Slope s = slope_at_zero(along, kStep);
    if (g.requires_grad()) {  // otherwise the gradient is constant, and its derivative zero
      for (auto t : x) t.clear_grad();
      g.backward(to_tensor(u, "reference"));
      for (size_t j = 0; j < x.size(); ++j) {
        if (!x[j].grad()) continue;
        const Array second = from_tensor(x[j].grad());
        got += dot(second, v[j]), scale += norm_of_products(second, v[j]);
      }
    }
    EXPECT_NEAR(got, s.value, tolerance(s, scale, 4 * terms));
    ++counts().second;
  }
}

/// Ops whose second derivative is not there, with the reason: a golden list.
std::map<std::string, std::string> without_second() {
  std::map<std::string, std::string> out;
  std::ifstream file(WEFT_SOURCE_DIR "/conformance/second_derivatives.txt");
  for (std::string line; std::getline(file, line);)
    if (!line.empty() && line[0] != '#')
      out[line.substr(0, line.find(':'))] = line.substr(line.find(':') + 1);
  return out;
}

class Gradients : public ::testing::TestWithParam<CaseFile> {
 protected:
  static void TearDownTestSuite() {
    std::printf("[gradients] %d directions of first, %d of second derivatives\n", counts().first,
                counts().second);
    EXPECT_GT(counts().first, 0);
  }
};

TEST_P(Gradients, MatchFiniteDifferences) {
  const ir::OpDef& op = *ir::find_op(GetParam().op);
  if (!op.differentiable) return;
  const auto missing = without_second();
  Random random(17);
  int checked = 0;
  uint64_t seed = 100;
  for (const auto& c : GetParam().cases()) {
    if (c.no_gradient) continue;
    SCOPED_TRACE(c.why);
    Probe p{op, value_or_raise(ir::order_attrs(op, c.attrs)), make_inputs(c, DType::f64, ++seed), {}};
    p.weights = random_like(from_tensor(p.call(p.leaves(p.inputs, false))), random);
    if (p.weights.v.empty()) continue;
    check_first(p, random);
    ++checked;
    if (!missing.contains(op.name)) {
      check_second(p, random);
    } else {
      EXPECT_THROW((void)p.gradients(p.inputs, true), Error)
          << op.name << " has a second derivative now: take it off "
          << "conformance/second_derivatives.txt";
    }
  }
  EXPECT_TRUE(checked > 0 || op.name == std::string_view("cast"))
      << op.name << " has no case with a gradient";
}

std::vector<CaseFile> files() { return {case_files().begin(), case_files().end()}; }
INSTANTIATE_TEST_SUITE_P(Folder, Gradients, ::testing::ValuesIn(files()),
                         [](const auto& info) { return std::string(info.param.op); });

TEST(GradientRules, CastHandsTheGradientBack) {
  Tensor x = Tensor::of({1, 2, 3}, {3}, DType::f64);
  x.requires_grad(true);
  cast(x, DType::f32).backward(Tensor::of({0.5, -2, 1.25}, {3}, DType::f32));
  EXPECT_EQ(x.grad().dtype(), DType::f64);
  EXPECT_EQ(x.grad().to_vector<double>(), (std::vector<double>{0.5, -2, 1.25}));
  EXPECT_FALSE(cast(x, DType::i32).requires_grad());
}

TEST(GradientRules, AtKinks) {
  Tensor x = Tensor::of({-1, 0, 2}, {3}, DType::f64);
  x.requires_grad(true);
  relu(x).backward(Tensor::of({1, 1, 1}, {3}, DType::f64));
  EXPECT_EQ(x.grad().to_vector<double>(), (std::vector<double>{0, 0, 1}));
  Tensor y = Tensor::of({3, 1, 3, 2}, {4}, DType::f64);
  y.requires_grad(true);
  max(y).backward();
  EXPECT_EQ(y.grad().to_vector<double>(), (std::vector<double>{0.5, 0, 0.5, 0}));
}

// The gradients of f(a, b) for dy = 1.
std::array<std::vector<double>, 2> gradients_of(Tensor (*f)(const Tensor&, const Tensor&),
                                                std::vector<double> a, std::vector<double> b) {
  const int64_t shape[] = {static_cast<int64_t>(a.size())};
  Tensor x = Tensor::of(std::span<const double>(a), shape, DType::f64);
  Tensor y = Tensor::of(std::span<const double>(b), shape, DType::f64);
  x.requires_grad(true), y.requires_grad(true);
  const std::vector<double> ones(a.size(), 1);
  f(x, y).backward(Tensor::of(std::span<const double>(ones), shape, DType::f64));
  return {x.grad().to_vector<double>(), y.grad().to_vector<double>()};
}

TEST(GradientRules, EqualOperandsShareTheGradient) {
  using V = std::vector<double>;
  const auto larger = gradients_of(maximum, {1, 2, 3}, {1, 5, -3});
  EXPECT_EQ(larger[0], (V{0.5, 0, 1}));
  EXPECT_EQ(larger[1], (V{0.5, 1, 0}));
  const auto smaller = gradients_of(minimum, {1, 2, 3}, {1, 5, -3});
  EXPECT_EQ(smaller[0], (V{0.5, 1, 0}));
  EXPECT_EQ(smaller[1], (V{0.5, 0, 1}));
}

TEST(GradientRules, APowerOfZeroOrOfANegativeNumber) {
  const auto g = gradients_of(power, {0, 0, 0, 2, -2}, {0, 1, 2, 0, 2});
  EXPECT_EQ(g[0], (std::vector<double>{0, 1, 0, 0, -4}));
  for (const size_t i : {0, 1, 2}) EXPECT_EQ(g[1][i], 0);
  EXPECT_NEAR(g[1][3], std::log(2.0), 1e-15);
  EXPECT_TRUE(std::isnan(g[1][4]));
}

// Far out no 0 may meet an infinity.
TEST(GradientRules, ActivationsStayFiniteInTheirTails) {
  Tensor (*const approximate)(const Tensor&) = [](const Tensor& x) { return gelu(x, true); };
  Tensor (*const exact)(const Tensor&) = [](const Tensor& x) { return gelu(x); };
  Tensor (*const soft)(const Tensor&) = [](const Tensor& x) { return softplus(x); };
  for (const DType t : {DType::f64, DType::f32})
    for (auto* f : {exact, approximate, soft, silu, sigmoid}) {
      Tensor x = Tensor::of({-3e38, -1e5, -89, 89, 1e5, 3e38}, {6}, t);
      x.requires_grad(true);
      const Tensor y = f(x);
      y.backward(Tensor::of({1, 1, 1, 1, 1, 1}, {6}, t));
      const auto g = x.grad().to_vector<double>();
      for (size_t i = 0; i < 6; ++i) {
        EXPECT_TRUE(std::isfinite(y.to_vector<double>()[i])) << i;
        EXPECT_NEAR(g[i], f != sigmoid && i >= 3 ? 1 : 0, 1e-30) << i;
      }
    }
}

TEST(GradientRules, AnOpWithoutOneIsAnErrorWhenRecorded) {
  const auto run = [](bool wants) {
    const Tensor one = Tensor::scalar(1), p = Tensor::of({1, 2}, {2}), g = Tensor::of({1, 2}, {2});
    Tensor parameter = p;
    parameter.requires_grad(wants);
    const Tensor m = Tensor::of({0, 0}, {2}), v = Tensor::of({0, 0}, {2});
    const Tensor* in[] = {&parameter, &g, &m, &v, &one, &one, &one};
    std::vector<Tensor> out(5);
    const auto& op = *ir::find_op("adamw_step");
    eager::apply(op, in, op.defaults(), out);
  };
  EXPECT_NO_THROW(run(false));
  try {
    run(true);
    FAIL() << "a gradient was dropped in silence";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("adamw_step has no gradient"), std::string::npos) << e.what();
  }
}

TEST(GradientRules, AnOverwrittenSavedTensorIsAnError) {
  Tensor x = Tensor::of({1, 2}, {2}), one = Tensor::scalar(1), other = Tensor::of({3, 4}, {2});
  x.requires_grad(true), other.requires_grad(true);
  const Tensor y = add(mul(x, x), other);
  {
    const NoGrad none;
    const Tensor g = Tensor::of({1, 2}, {2}), m = Tensor::of({0, 0}, {2}), v = Tensor::of({0, 0}, {2});
    const Tensor wm = Tensor::scalar(1), wv = Tensor::scalar(1);
    const Tensor* in[] = {&x, &g, &m, &v, &one, &wm, &wv};
    std::vector<Tensor> out(5);
    const auto& op = *ir::find_op("adamw_step");
    eager::apply(op, in, op.defaults(), out);
  }
  try {
    y.backward(Tensor::of({1, 1}, {2}));
    FAIL() << "backward read a tensor that was overwritten";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("overwritten"), std::string::npos) << e.what();
  }
  EXPECT_FALSE(other.grad()) << "an error gives no leaf a gradient";
}

TEST(GradientRules, HistoryIsGoneBackThroughOnceUnlessItIsKept) {
  Tensor x = Tensor::of({1, 2}, {2}), seed = Tensor::of({1, 1}, {2});
  x.requires_grad(true);
  const Tensor y = mul(x, x);
  y.backward(seed, false, true);
  y.backward(seed);
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{4, 8}));
  try {
    y.backward(seed);
    FAIL() << "what was saved is gone";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("keep"), std::string::npos) << e.what();
  }
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{4, 8}));
}

// A decomposition's reshapes share memory; what it gives out is the caller's own.
TEST(GradientRules, ResultsAreNoViewsOfOperands) {
  set_default_backend("reference");
  const std::vector<double> values{1, 2, 3, 4};
  const Tensor p = Tensor::of({1, 2, 3, 4}, {2, 2}, DType::f64), y = einsum("ij->ij", {p});
  sgd_step(p, p, full(0, {2, 2}, DType::f64), Tensor::scalar(1, DType::f64));
  EXPECT_NE(p.to_vector<double>(), values);
  EXPECT_EQ(y.to_vector<double>(), values);
}

// A reshape on the way to a loss is read where it lies, and neither of the two is written over.
TEST(GradientRules, ViewsAreNotWrittenOver) {
  set_default_backend("reference");
  Tensor x = Tensor::of({1, 2, 3, 4}, {4});
  x.requires_grad(true);
  const Tensor y = mul(x, x), z = reshape(y, {2, 2}), one = Tensor::of({1, 1, 1, 1}, {4});
  try {
    sgd_step(y.detach(), one, one, Tensor::scalar(1));
    FAIL() << "a value has changed";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("a reshape of it"), std::string::npos) << e.what();
  }
  z.backward(Tensor::of({1, 1, 1, 1}, {2, 2}));
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{2, 4, 6, 8}));
  EXPECT_EQ(z.to_vector<float>(), (std::vector<float>{1, 4, 9, 16}));
}

TEST(GradientRules, PaddingOfAnEmbeddingGetsNoGradient) {
  Tensor table = Tensor::of({0, 1, 2, 3, 4, 5}, {3, 2}, DType::f64);
  table.requires_grad(true);
  embedding(table, Tensor::of({1, 2, 1}, {3}, DType::i32), 1)
      .backward(Tensor::of({1, 2, 3, 4, 5, 6}, {3, 2}, DType::f64));
  EXPECT_EQ(table.grad().to_vector<double>(), (std::vector<double>{0, 0, 0, 0, 3, 4}));
}

// What a composite without a rule is differentiated by is ordinary history: it can be shared and repeated.
TEST(GradientRules, ByDecompositionHaveGradients) {
  Tensor x = Tensor::of({1, 2, 3}, {3}, DType::f64);
  x.requires_grad(true);
  const Tensor y = mul(x, x);
  mean_square(y).backward(Tensor::scalar(1, DType::f64), true);  // sum(x^4) / 3: 4 x^3 / 3
  const Tensor first = x.grad();
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(first.to_vector<double>()[i], 4.0 / 3 * std::pow(i + 1, 3), 1e-12);
  x.clear_grad();
  sum(first).backward(Tensor::scalar(1, DType::f64), true);  // 4 x^2
  const Tensor second = x.grad();
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(second.to_vector<double>()[i], 4 * std::pow(i + 1, 2), 1e-12);
  x.clear_grad();
  sum(second).backward();  // 8 x
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(x.grad().to_vector<double>()[i], 8.0 * (i + 1), 1e-12);
}

}  // namespace
}  // namespace weft::conformance::gradients_test
