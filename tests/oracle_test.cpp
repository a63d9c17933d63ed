#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <stdexcept>

#include "conformance/rules.h"
#include "conformance/run.h"

// The oracle is tested too: against the hardware, published vectors and exact fractions.
namespace weft::conformance {
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

// A case's operands made whole: what a normal distribution gave becomes a few small integers.
std::vector<Array> whole_inputs(const Case& c, DType t) {
  auto inputs = make_inputs(c, t, 9);
  for (size_t i = 0; i < inputs.size(); ++i)
    for (Real& v : inputs[i].v)
      if (c.inputs[i].kind != Input::Kind::values && is_float(inputs[i].dtype)) v = std::ceil(4 * v);
  return inputs;
}

bool small_integers(const std::vector<Array>& inputs) {
  for (const auto& a : inputs)
    for (const Real v : a.v)
      if (!std::isfinite(v) || v != std::trunc(v) || std::fabs(v) > 1000) return false;
  return true;
}

// The graph of one call in exact fractions; empty where one of its ops leaves them (exp, 1 / 0).
std::vector<ArrayOf<Rational>> exactly_evaluated(const ir::Graph& g, const std::vector<Array>& inputs) {
  std::vector<ArrayOf<Rational>> all(g.types.size()), out;
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto& a = all[static_cast<size_t>(g.inputs[i].value)];
    a.dtype = inputs[i].dtype, a.shape = inputs[i].shape;
    for (const Real v : inputs[i].v) a.v.push_back(Rational::of(v));
  }
  try {
    for (const auto& node : g.nodes) {
      std::vector<const ArrayOf<Rational>*> in;
      for (const int32_t id : node.inputs)
        if (id >= 0) in.push_back(&all[static_cast<size_t>(id)]);
      auto results = evaluate<Rational>(*node.op, node.attrs, in);
      for (size_t k = 0; k < results.size(); ++k)
        all[static_cast<size_t>(node.outputs[k])] = std::move(results[k]);
    }
  } catch (const std::logic_error&) {  // no fraction
    return {};
  } catch (const std::overflow_error&) {  // more than 128 bits
    return {};
  }
  for (const auto& o : g.outputs) out.push_back(all[static_cast<size_t>(o.value)]);
  return out;
}

// Does every primitive of this graph have a meaning in fractions?
bool stays_in_fractions(const ir::Graph& g) {
  return std::ranges::all_of(g.nodes,
                             [](const auto& node) { return find_rule(node.op->name)->exact != nullptr; });
}

// One rounding at the end is all that a primitive's reference kernel and the oracle may do to an exact
// answer.
TEST(Oracle, IsExactOnSmallIntegersAndSoIsTheReference) {
  std::map<std::string, int> checked;
  std::set<std::string> could;  // whose meaning needs no more than fractions
  for (const auto& file : case_files()) {
    const auto& op = *ir::find_op(file.op);
    for (const auto& c : file.cases())
      for (const DType t : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
        const auto inputs = whole_inputs(c, t);
        const auto attrs = value_or_raise(ir::order_attrs(op, c.attrs));
        std::vector<TensorType> types;
        for (const auto& a : inputs) types.push_back(type_of(a));
        auto graph = graph_of(op, attrs, types);
        if (!graph.ok()) continue;
        if (stays_in_fractions(graph.value())) could.insert(op.name);
        if (!small_integers(inputs)) continue;
        const auto exact = exactly_evaluated(graph.value(), inputs);
        if (exact.empty()) continue;
        SCOPED_TRACE(fmt::format("{} {} ({})", op.name, name(t), c.why));
        auto bounded = bound_op(op, attrs, inputs);
        const auto run = run_op(op, attrs, inputs, "reference");
        ASSERT_TRUE(bounded.ok());
        for (size_t i = 0; i < exact[0].v.size(); ++i) {
          const Real truth = exact[0].v[i].real(), oracle = bounded.value()[0].value.v[i];
          EXPECT_LE(std::fabs(oracle - truth), 0x1p-60L * std::fabs(truth));
          EXPECT_TRUE(run.outputs[0].v[i] == round_to(exact[0].dtype, truth) || !op.primitive())
              << "element " << i;
        }
        ++checked[op.name];
      }
  }
  // The others (exp, sqrt and what is made of them) are compared with PyTorch, as all are:
  // tests/torch_test.cpp.
  EXPECT_GE(could.size(), 65u);
  for (const auto& op : could)
    EXPECT_GT(checked[op], 0) << op << ": give conformance/ops/" << op
                              << ".cpp a case of small whole numbers";
  fmt::print("[oracle] {} of {} ops checked in exact arithmetic\n", could.size(), ir::all_ops().size());
}

}  // namespace
}  // namespace weft::conformance
