#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>

#include "conformance/expectations.h"
#include "conformance/rules.h"
#include "conformance/run.h"

// The oracle is tested too: against the hardware, published vectors and exact fractions.
namespace weft::conformance::oracle_test {
namespace {

TEST(Oracle, RoundsAsTheHardwareDoes) {
  Random random(3);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t bits = random.bits();
    double x;
    std::memcpy(&x, &bits, sizeof x);
    if (std::isnan(x)) continue;
    if (i % 2) x = std::ldexp(random.normal(), static_cast<int>(random.bits() % 300) - 150);
    ASSERT_EQ(round_to(DType::f32, x), static_cast<Real>(static_cast<float>(x))) << x;
    ASSERT_EQ(round_to(DType::f64, x), static_cast<Real>(x)) << x;
  }
}

TEST(Oracle, SmallFloatsSurviveTheirBytes) {
  for (const DType t : {DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2})
    for (uint32_t code = 0; code < 1u << (8 * byte_size(t)); ++code) {
      std::byte bytes[2];
      std::memcpy(bytes, &code, byte_size(t));
      const Array a = decode(t, {1}, std::span(bytes, byte_size(t)));
      if (std::isnan(a.v[0])) continue;
      ASSERT_EQ(round_to(t, a.v[0]), a.v[0]) << name(t) << " " << code;
      ASSERT_EQ(std::memcmp(encode(a).data(), bytes, byte_size(t)), 0) << name(t) << " " << code;
    }
}

// kat_vectors of Random123 1.14: philox4x32-10.
TEST(Oracle, PhiloxGivesThePublishedVectors) {
  EXPECT_EQ(philox(0, 0, 0), (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~0ull, ~0ull, ~0ull),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822ull, 0x85a308d3243f6a88ull, 0x0370734413198a2eull),
            (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// A case's random operands as small integers; many functions are rational only at single points.
enum class Fill { whole, zeros, ones, signs };

std::vector<Array> filled_inputs(const Case& c, DType t, Fill fill) {
  auto inputs = make_inputs(c, t, 9);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (c.inputs[i].kind == Input::Kind::values || !is_float(inputs[i].dtype)) continue;
    Real sign = 1;
    for (Real& v : inputs[i].v) {
      v = fill == Fill::whole ? std::ceil(4 * v) : fill == Fill::zeros ? 0 : fill == Fill::ones ? 1 : sign;
      sign = -sign;
    }
  }
  return inputs;
}

// Few enough bits that products of several stay within a fraction's 128.
bool small_numbers(const std::vector<Array>& inputs) {
  for (const auto& a : inputs)
    for (const Real v : a.v)
      if (!std::isinf(v) && !(64 * v == std::trunc(64 * v) && std::fabs(v) <= 1000)) return false;
  return true;
}

// A value as the oracle's numbers, and as fractions where all of its elements are some: exp 1 is none.
struct Known {
  Array near;
  std::optional<ArrayOf<Rational>> exact;

  bool finite() const {
    return std::ranges::all_of(near.v, [](Real v) { return std::isfinite(v); });
  }
  bool zero() const {
    return exact && std::ranges::all_of(exact->v, [](const Rational& v) { return v == Rational(0); });
  }
};

// Zeros in the shape of `near`, where the product of `in` is so although not all of them are fractions.
std::optional<ArrayOf<Rational>> times_zero(const std::vector<const Known*>& in, const Array& near) {
  if (!std::ranges::all_of(in, &Known::finite) || std::ranges::none_of(in, &Known::zero)) return {};
  return ArrayOf<Rational>{near.dtype, near.shape, std::vector<Rational>(near.v.size())};
}

std::vector<Known> results_of(const ir::Node& node, const std::vector<const Known*>& in) {
  std::vector<const Array*> near;
  std::vector<const ArrayOf<Rational>*> exact;
  for (const Known* x : in) {
    near.push_back(&x->near);
    if (x->exact) exact.push_back(&*x->exact);
  }
  std::vector<Known> results;
  for (auto& array : evaluate<Real>(*node.op, node.attrs, near)) results.push_back({std::move(array), {}});
  if (exact.size() < in.size()) {
    if (node.op->name == std::string("mul")) results[0].exact = times_zero(in, results[0].near);
    return results;
  }
  try {
    auto fractions = evaluate<Rational>(*node.op, node.attrs, exact);
    for (size_t k = 0; k < fractions.size(); ++k) results[k].exact = std::move(fractions[k]);
  } catch (const std::logic_error&) {     // no fraction
  } catch (const std::overflow_error&) {  // more than 128 bits
  }
  return results;
}

// The graph of one call in exact fractions; empty where its results are none.
std::vector<ArrayOf<Rational>> exactly_evaluated(const ir::Graph& g, const std::vector<Array>& inputs) {
  std::vector<Known> all(g.types.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    ArrayOf<Rational> exact{inputs[i].dtype, inputs[i].shape, {}};
    for (const Real v : inputs[i].v) exact.v.push_back(Rational::of(v));
    all[static_cast<size_t>(g.inputs[i].value)] = {inputs[i], std::move(exact)};
  }
  for (const auto& node : g.nodes) {
    std::vector<const Known*> in;
    for (const int32_t id : node.inputs)
      if (id >= 0) in.push_back(&all[static_cast<size_t>(id)]);
    auto results = results_of(node, in);
    for (size_t k = 0; k < results.size(); ++k)
      all[static_cast<size_t>(node.outputs[k])] = std::move(results[k]);
  }
  std::vector<ArrayOf<Rational>> out;
  for (const auto& o : g.outputs) {
    const auto& exact = all[static_cast<size_t>(o.value)].exact;
    if (!exact) return {};
    out.push_back(*exact);
  }
  return out;
}

bool within(Real error, Real a, Real b) {
  return a == b || (std::isfinite(a) && std::isfinite(b) && std::fabs(a - b) <= error);
}

// Fractions are slow, and many numbers go through the same code as few: WEFT_FULL=1 takes those, too.
bool few_numbers(const std::vector<Array>& inputs) {
  size_t n = 0;
  for (const Array& a : inputs) n += a.v.size();
  return n <= 10'000 || std::getenv("WEFT_FULL");
}

// One rounding at the end is all that a primitive's reference kernel and the oracle may do to an exact
// answer; what is made of primitives stays within its bound. False where the answer is no fraction.
bool exact_as_fractions(const ir::OpDef& op, const std::vector<AttrValue>& attrs,
                        const std::vector<Array>& inputs) {
  std::vector<TensorType> types;
  for (const auto& a : inputs) types.push_back(type_of(a));
  auto graph = graph_of(op, attrs, types);
  if (!graph.ok() || !small_numbers(inputs)) return false;
  const auto exact = exactly_evaluated(graph.value(), inputs);
  if (exact.empty() || exact[0].v.empty()) return false;
  const auto bounded = value_or_raise(bound_op(op, attrs, inputs));
  const auto run = run_op(op, attrs, inputs, "reference");
  EXPECT_EQ(bounded.size(), exact.size());
  EXPECT_EQ(run.outputs.size(), exact.size()) << run.refused;
  if (bounded.size() != exact.size() || run.outputs.size() != exact.size()) return true;
  for (size_t k = 0; k < exact.size(); ++k)
    for (size_t i = 0; i < exact[k].v.size(); ++i) {
      const Real truth = exact[k].v[i].real(), got = run.outputs[k].v[i];
      const Real oracle = bounded[k].value.v[i], rounded = round_to(exact[k].dtype, truth);
      EXPECT_TRUE(oracle == rounded || within(0x1p-60L * std::fabs(truth), oracle, truth))
          << "oracle, output " << k << ", element " << i << ": " << oracle << ", not " << truth;
      EXPECT_TRUE(op.primitive() ? got == rounded : within(bounded[k].error[i], got, truth))
          << "output " << k << ", element " << i << ": " << got << ", not " << truth;
    }
  return true;
}

TEST(Oracle, IsExactOnSmallIntegersAndSoIsTheReference) {
  std::map<std::string, int> checked;
  for (const auto& file : case_files()) {
    const auto& op = *ir::find_op(file.op);
    for (const auto& c : file.cases())
      for (const DType t : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i32, DType::boolean})
        for (const Fill fill : {Fill::whole, Fill::zeros, Fill::ones, Fill::signs}) {
          if (!holds(c.dtypes, t) || (!is_float(t) && fill != Fill::whole)) continue;
          SCOPED_TRACE(fmt::format("{} {} ({}), fill {}", op.name, name(t), c.why, static_cast<int>(fill)));
          const auto attrs = value_or_raise(ir::order_attrs(op, c.attrs));
          const auto inputs = filled_inputs(c, t, fill);
          if (few_numbers(inputs)) checked[op.name] += exact_as_fractions(op, attrs, inputs);
        }
  }
  for (const auto* op : ir::all_ops())
    EXPECT_GT(checked[op->name], 0) << op->name << ": give conformance/ops/" << op->name
                                    << ".cpp a case with an answer in fractions";
  fmt::print("[oracle] {} of {} ops checked in exact arithmetic\n",
             std::ranges::count_if(checked, [](const auto& op) { return op.second > 0; }),
             ir::all_ops().size());
}

// A product's bound takes what any order gives, and where all of them are finite, infinite or NaN, no other.
TEST(Oracle, ProductsAreJudgedAsAnyOrderGivesThem) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  constexpr double kFactors[] = {kInfinite, std::nan(""), 0, -1e-200, 3e-200, 1e200, -7e200, 0.5, 2, -1};
  Random random(5);
  int open = 0;
  for (int round = 0; round < 2000; ++round) {
    const Array x{DType::f64, {4}, [&] {
                    std::vector<Real> v(4);
                    for (Real& factor : v) factor = kFactors[random.bits() % std::size(kFactors)];
                    return v;
                  }()};
    const auto right = value_or_raise(bound_op(*ir::find_op("prod"), {Shape{}, int64_t{0}}, {x}))[0];
    const auto accepts = [&](double y) { return judge(Array{DType::f64, {}, {y}}, right).ok; };
    int order[] = {0, 1, 2, 3};
    std::set<int> kinds;
    do {
      double f[4];
      for (int i = 0; i < 4; ++i) f[i] = static_cast<double>(x.v[static_cast<size_t>(order[i])]);
      for (const double y : {f[0] * f[1] * f[2] * f[3], (f[0] * f[1]) * (f[2] * f[3])}) {
        EXPECT_TRUE(accepts(y)) << f[0] << " " << f[1] << " " << f[2] << " " << f[3] << ": " << y;
        kinds.insert(std::isnan(y) ? 0 : std::isinf(y) ? 1 : 2);
      }
    } while (std::next_permutation(order, order + 4));
    if (kinds.size() > 1)
      ++open;
    else
      EXPECT_FALSE(accepts(*kinds.begin() == 2 ? kInfinite : 1))
          << x.v[0] << " " << x.v[1] << " " << x.v[2] << " " << x.v[3];
  }
  EXPECT_GT(open, 100);
}

// Expectations are checked both ways: regressions fail, and so do silent improvements.
TEST(Expectations, DriftFailsBothWays) {
  const std::string path = ::testing::TempDir() + "expectations.txt";
  std::ofstream(path) << "# a remark\nrefused  ops/cast f8*  has no f8\nwrong  ops/exp f16*  issue 12\n";
  auto known = value_or_raise(Expectations::read(path));
  using State = Found::State;
  const auto judged = [&](const char* name, Found found) {
    return known.judged({"ops", name, std::move(found)}).state;
  };
  EXPECT_EQ(known.unmatched().size(), 2u);
  EXPECT_EQ(judged("add f32", {}), State::passed);
  EXPECT_EQ(judged("cast f8e4m3 [3]", Found::refused("far has no f8")), State::refused);
  EXPECT_EQ(judged("exp f16 [3]", Found::wrong("3 ulp")), State::refused);
  EXPECT_EQ(known.unmatched().size(), 0u);
  EXPECT_EQ(judged("cast f8e4m3 [3]", Found::refused("another reason")), State::failed);
  EXPECT_EQ(judged("cast f8e4m3 [3]", {}), State::failed);
  EXPECT_EQ(judged("exp f16 [3]", {}), State::failed);
  EXPECT_EQ(judged("add f32", Found::refused("busy")), State::failed);
  EXPECT_EQ(judged("add f32", Found::wrong("0")), State::failed);
  std::ofstream(path) << "passes  everything  always\n";
  EXPECT_NE(Expectations::read(path).status().text().find("line 1"), std::string::npos);
}

}  // namespace
}  // namespace weft::conformance::oracle_test
