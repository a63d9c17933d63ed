#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <stdexcept>

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

// One rounding at the end is all that a primitive's reference kernel and the oracle may do to an exact
// answer.
TEST(Oracle, IsExactOnSmallIntegersAndSoIsTheReference) {
  std::map<std::string, int> checked;
  for (const auto& file : case_files()) {
    const auto& op = *ir::find_op(file.op);
    for (const auto& c : file.cases())
      for (const DType t : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
        const auto inputs = whole_inputs(c, t);
        const auto attrs = value_or_raise(ir::order_attrs(op, c.attrs));
        std::vector<TensorType> types;
        for (const auto& a : inputs) types.push_back(type_of(a));
        auto graph = graph_of(op, attrs, types);
        if (!graph.ok() || !small_integers(inputs)) continue;
        const auto exact = exactly_evaluated(graph.value(), inputs);
        if (exact.empty() || !is_float(exact[0].dtype)) continue;
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
  for (const char* op :
       {"add",       "sub",         "mul",         "div",     "mod",    "maximum", "minimum",
        "floor",     "round",       "sum",         "max",     "pad",    "matmul",  "matmul2d",
        "linear",    "scatter_add", "mse",         "gather",  "where",  "slice",   "reshape",
        "broadcast", "leaky_relu",  "mean_square", "cast",    "full",   "relu",    "clamp",
        "abs",       "sign",        "square",      "neg",     "ceil",   "trunc",   "prod",
        "min",       "cumsum",      "scatter",     "permute", "concat", "sort",    "iota"})
    EXPECT_GT(checked[op], 0) << op << " was not checked in exact arithmetic";
}

}  // namespace
}  // namespace weft::conformance
