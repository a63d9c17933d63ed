#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "conformance/gradients.h"
#include "conformance/run.h"

// PyTorch's answers, from scripts/torch_oracle: they and ours must be within the derived bound of the truth.
namespace weft::conformance::torch_test {
namespace {

using nlohmann::json;

/// All cases of conformance/data/torch, family by family.
const std::vector<json>& answers() {
  static const std::vector<json> all = [] {
    std::set<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(WEFT_SOURCE_DIR "/conformance/data/torch"))
      files.insert(entry.path());
    std::vector<json> cases;
    for (const auto& path : files) {
      std::ifstream file(path);
      json parsed = json::parse(file);
      for (auto& c : parsed["cases"]) cases.push_back(std::move(c));
    }
    return cases;
  }();
  return all;
}

Array read_array(const json& j) {
  Array a{*dtype_from_name(j[0].get<std::string>()), j[1].get<Dims>(), {}};
  for (const auto& v : j[2]) {
    if (v.is_string())  // JSON has no NaN and no infinity
      a.v.push_back(std::stod(v.get<std::string>()));
    else if (v.is_boolean())
      a.v.push_back(v.get<bool>());
    else if (v.is_number_unsigned())
      a.v.push_back(static_cast<Real>(v.get<uint64_t>()));
    else if (v.is_number_integer())
      a.v.push_back(static_cast<Real>(v.get<int64_t>()));
    else
      a.v.push_back(v.get<double>());
  }
  return a;
}

AttrValue read_attr(const json& j) {
  if (j.is_string()) return j.get<std::string>();
  if (j.is_number_integer()) return j.get<int64_t>();
  if (j.is_number()) return j.get<double>();
  Shape dims;
  for (const auto& d : j) dims.push_back(d.get<int64_t>());
  return dims;
}

struct Answer {
  const ir::OpDef* op = nullptr;
  std::vector<AttrValue> attrs;
  std::vector<Array> inputs, outputs;
  std::vector<std::optional<Array>> grads;  // by operand
  std::optional<Array> seed;
};

Answer read_answer(const json& j) {
  Answer a;
  a.op = ir::find_op(j["op"].get<std::string>());
  if (!a.op)
    throw std::runtime_error("an answer for an op that does not exist: " + j["op"].get<std::string>());
  std::vector<Attr> named;
  for (const auto& [key, value] : j["attrs"].items()) named.push_back({key, read_attr(value)});
  a.attrs = value_or_raise(ir::order_attrs(*a.op, named));
  for (const auto& x : j["inputs"]) a.inputs.push_back(read_array(x));
  for (const auto& y : j["outputs"]) a.outputs.push_back(read_array(y));
  if (!j.contains("grads")) return a;
  for (const auto& g : j["grads"])
    a.grads.push_back(g.is_null() ? std::nullopt : std::optional(read_array(g)));
  a.seed = read_array(j["seed"]);
  return a;
}

GradientCall gradient_call(const Answer& a) {
  return {*a.op, a.attrs, [&a](size_t i) { return a.grads[i].has_value(); }};
}

void expect_within(const Array& got, const Bounded& want, const std::string& what) {
  const Verdict v = judge(got, want);
  EXPECT_TRUE(v.ok) << what << ": " << v.reason;
}

// The oracle follows a composite's decomposition exactly, whatever it says: only PyTorch can tell that it
// says what its name promises. A primitive's meaning is written in the oracle, and wants confirming as much.
TEST(Torch, EveryOpHasAnAnswer) {
  std::set<std::string> have;
  for (const auto& c : answers()) have.insert(c["op"].get<std::string>());
  for (const auto* op : ir::all_ops())
    EXPECT_TRUE(have.contains(op->name)) << op->name << ": give scripts/torch_oracle a case, and run it";
}

TEST(Torch, ResultsAgree) {
  int n = 0;
  for (const auto& j : answers()) {
    const Answer a = read_answer(j);
    SCOPED_TRACE(fmt::format("case {}: {} {}", n++, a.op->name, j["attrs"].dump()));
    auto bounded = bound_op(*a.op, a.attrs, a.inputs);
    ASSERT_TRUE(bounded.ok()) << bounded.status().text();
    const auto run = run_op(*a.op, a.attrs, a.inputs, "reference");
    ASSERT_EQ(run.refused, "");
    ASSERT_EQ(a.outputs.size(), run.outputs.size());
    for (size_t k = 0; k < a.outputs.size(); ++k) {
      expect_within(a.outputs[k], bounded.value()[k], std::string("PyTorch's ") + a.op->outputs[k]);
      expect_within(run.outputs[k], bounded.value()[k], std::string("ours, ") + a.op->outputs[k]);
    }
  }
  std::printf("[torch] %d results compared\n", n);
  EXPECT_GT(n, 0);
}

TEST(Torch, GradientsAgree) {
  int n = 0;
  for (const auto& j : answers()) {
    const Answer a = read_answer(j);
    if (!a.seed) continue;
    SCOPED_TRACE(fmt::format("{} {} {}", a.op->name, j["attrs"].dump(), name(a.inputs[0].dtype)));
    const auto bounded = bounded_gradients(gradient_call(a), a.inputs, *a.seed);
    std::vector<Tensor> x;
    for (const auto& in : a.inputs) x.push_back(to_tensor(in, "reference"));
    const auto ours = gradients(gradient_call(a), x, to_tensor(*a.seed, "reference"));
    size_t k = 0;
    for (size_t i = 0; i < a.grads.size(); ++i) {
      if (!a.grads[i]) continue;
      ASSERT_LT(k, bounded.size());
      expect_within(*a.grads[i], bounded[k], std::string("PyTorch's gradient of ") + a.op->inputs[i]);
      expect_within(from_tensor(ours[k]), bounded[k], std::string("our gradient of ") + a.op->inputs[i]);
      ++k, ++n;
    }
  }
  std::printf("[torch] %d gradients compared\n", n);
  EXPECT_GT(n, 0);
}

}  // namespace
}  // namespace weft::conformance::torch_test
