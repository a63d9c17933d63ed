#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "compiler/compile.h"
#include "conformance/noise.h"
#include "conformance/run.h"
#include "formats/file.h"
#include "formats/json.h"
#include "import/import.h"
#include "program/program.h"
#include "runtime/devices.h"
#include "runtime/session.h"
#include "test_backends.h"

// What PyTorch exported computes here what it computes there (scripts/import_oracle).
namespace weft {
namespace {

using conformance::Array;
using conformance::Bounded;
using nlohmann::json;

const std::string kData = WEFT_SOURCE_DIR "/conformance/data/import/";

std::string read(const std::string& path) {
  const auto bytes = value_or_raise(formats::read_file(path));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The same graph in another dtype: what is f32 in a model is f64 for the truth, and the other way round.
std::string with_dtype(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::vector<std::byte> bytes_of(const Array& a) { return conformance::encode(a); }
conformance::Dims dims_of(const Shape& shape) {
  conformance::Dims out;
  for (const Dim d : shape) out.push_back(d.value());
  return out;
}

/// An imported model with everything that its graph reads.
struct Model {
  importer::Imported imported;
  std::vector<Array> operands;  // inputs, states, weights
};

Array array_of(const TensorType& type, std::span<const std::byte> bytes) {
  return conformance::decode(type.dtype, dims_of(type.shape), bytes);
}
Array converted(Array a, DType dtype) {
  a.dtype = dtype;
  if (is_float(dtype))
    for (auto& x : a.v) x = conformance::round_to(dtype, x);
  return a;
}

Model model_of(const std::string& ir_text, std::span<const formats::Safetensors> files,
               const std::vector<Array>& inputs, const importer::Options& options = {}) {
  const auto ir = value_or_raise(importer::parse_model_ir(ir_text, "model_ir.json"));
  Model m{value_or_raise(importer::import_model(ir, files, options)), {}};
  const ir::Graph& g = *m.imported.graph;
  for (size_t i = 0; i < inputs.size(); ++i)
    m.operands.push_back(converted(inputs[i], g.types[static_cast<size_t>(g.inputs[i].value)].dtype));
  const auto add = [&](const std::string& name, int32_t value) {
    m.operands.push_back(
        array_of(g.types[static_cast<size_t>(value)], m.imported.weights.at(name).bytes));
  };
  for (const auto& s : g.states) add(s.name, s.before);
  for (const auto& w : g.weights) add(w.name, w.value);
  return m;
}

// Compiled, written, read again and run.
std::vector<Array> run_compiled(const Model& m, const std::string& backend) {
  const auto weights = [&](const std::string& name) -> Result<program::Blob> {
    const auto& bytes = m.imported.weights.at(name).bytes;
    return program::Blob{bytes.data(), bytes.size(), {}};
  };
  const auto program = value_or_raise(compiler::compile(*m.imported.graph, weights));
  const std::string file = program::serialize(program);
  auto again = std::make_shared<const program::CompiledProgram>(
      value_or_raise(program::deserialize(program::Blob::copy_of(file.data(), file.size()))));
  raise_if(compiler::check_ops(*again));
  auto session = value_or_raise(runtime::Session::create(
      again, value_or_raise(runtime::devices_for(backend, {})), {}));
  std::vector<runtime::HostTensor> inputs;
  for (size_t i = 0; i < again->inputs.size(); ++i) {
    const Array& a = m.operands[i];
    inputs.push_back({{a.dtype, {a.shape.begin(), a.shape.end()}}, bytes_of(a)});
  }
  std::vector<Array> out;
  for (const auto& t : value_or_raise(session->run(inputs)))
    out.push_back(conformance::decode(t.type.dtype, {t.type.shape.begin(), t.type.shape.end()}, t.bytes));
  return out;
}

void expect_within(const std::vector<Array>& got, const std::vector<Bounded>& bound, double slack) {
  ASSERT_EQ(got.size(), bound.size());
  for (size_t k = 0; k < got.size(); ++k) {
    const auto verdict = conformance::judge(got[k], bound[k], slack);
    EXPECT_TRUE(verdict.ok) << "output " << k << ": " << verdict.reason;
  }
}

std::vector<std::string> cpu_backends() { return testing::backends({"reference", "native", "openmp", "opencl", "far"}); }

// ---- whole models
class ImportedModels : public ::testing::TestWithParam<const char*> {
 protected:
  std::string folder() const { return kData + GetParam() + "/"; }
  /// The answers whose names begin with "in." or "out.", in the order of `ports`.
  static std::vector<Array> answers(const formats::Safetensors& file, const std::string& prefix,
                                    const json& ports) {
    std::vector<Array> out;
    for (const auto& port : ports) {
      const auto* t = file.find(prefix + port["name"].get<std::string>());
      out.push_back(conformance::decode(t->dtype, {t->shape.begin(), t->shape.end()}, t->bytes));
    }
    return out;
  }
};

TEST_P(ImportedModels, SayWhatPyTorchSays) {
  const std::string text = read(folder() + "model_ir.json");
  const json ports = json::parse(text);
  const std::array files = {value_or_raise(formats::read_safetensors(folder() + "model.safetensors"))};
  const auto answers_file = value_or_raise(formats::read_safetensors(folder() + "answers.safetensors"));
  const auto inputs = answers(answers_file, "in.", ports["graph_inputs"]);
  const auto wanted = answers(answers_file, "out.", ports["graph_outputs"]);

  // In f64: what PyTorch says is right, to f64's rounding.
  const Model wide = model_of(with_dtype(text, "float32", "float64"), files, inputs);
  expect_within(wanted, value_or_raise(conformance::noise_bound(*wide.imported.graph, wide.operands)), 2);

  const Model m = model_of(text, files, inputs);
  const auto bound = value_or_raise(conformance::noise_bound(*m.imported.graph, m.operands));
  for (const auto& backend : cpu_backends()) {
    SCOPED_TRACE(backend);
    expect_within(run_compiled(m, backend), bound, 1);
  }
}
INSTANTIATE_TEST_SUITE_P(All, ImportedModels,
                         ::testing::Values("mlp", "resnet", "bert", "gpt2", "llama", "vit"),
                         [](const auto& info) { return std::string(info.param); });

// ---- graphs of one node
Array array_of(const json& elements, const json& info) {
  Array a{*importer::dtype_from_torch(info["dtype"].get<std::string>()), {}, {}};
  for (const auto& n : info["shape"]) a.shape.push_back(n.get<int64_t>());
  for (const auto& e : elements)
    a.v.push_back(e.is_string() ? std::strtold(e.get<std::string>().c_str(), nullptr) : e.get<long double>());
  return a;
}
std::vector<Array> arrays_of(const json& all, const json& infos) {
  std::vector<Array> out;
  for (size_t i = 0; i < all.size(); ++i) out.push_back(array_of(all[i], infos[i]));
  return out;
}
// The weights of a case as a file.
formats::Safetensors weights_of(const json& c, const json& ir) {
  std::vector<formats::TensorEntry> entries;
  std::vector<std::vector<std::byte>> bytes;
  bytes.reserve(c["weights"].size());
  for (const auto& info : ir["weights"]) {
    const auto name = info["name"].get<std::string>();
    if (!c["weights"].contains(name)) continue;
    const Array a = array_of(c["weights"][name], info);
    bytes.push_back(conformance::encode(a));
    entries.push_back({name, a.dtype, {a.shape.begin(), a.shape.end()}, bytes.back()});
  }
  formats::order_by_width(entries);
  return value_or_raise(formats::parse_safetensors(value_or_raise(formats::encode_safetensors(entries, {})), "case"));
}

// Of a case in f64 (or in the dtypes that it is about), the truth is PyTorch's. In f32 every backend is judged.
TEST(ImportedNodes, SayWhatPyTorchSays) {
  const json all = value_or_raise(formats::read_json_object(kData + "nodes.json"))["cases"];
  for (const json& c : all) {
    SCOPED_TRACE(c["name"].get<std::string>());
    const std::string text = c["ir"].dump();
    for (const bool narrow : {false, true}) {
      const json ir = json::parse(narrow ? with_dtype(text, "float64", "float32") : text);
      const std::array files = {weights_of(c, ir)};
      try {
        const Model m = model_of(ir.dump(), files, arrays_of(c["inputs"], ir["graph_inputs"]));
        const auto bound = value_or_raise(conformance::noise_bound(*m.imported.graph, m.operands));
        if (!narrow) expect_within(arrays_of(c["outputs"], ir["graph_outputs"]), bound, 2);
        for (const auto& backend : cpu_backends()) {
          SCOPED_TRACE(backend);
          if (narrow || backend == "reference") expect_within(run_compiled(m, backend), bound, 1);
        }
      } catch (const Error& e) {
        ADD_FAILURE() << e.what();
      }
    }
  }
}

}  // namespace
}  // namespace weft
