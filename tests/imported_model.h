#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "compiler/compile.h"
#include "conformance/noise.h"
#include "conformance/run.h"
#include "formats/file.h"
#include "formats/safetensors.h"
#include "import/import.h"
#include "program/program.h"
#include "runtime/devices.h"
#include "runtime/session.h"
#include "test_backends.h"

// Models that PyTorch exported, imported, compiled and run.
namespace weft::testing::imported {

using conformance::Array;
using conformance::Bounded;

inline const std::string kData = WEFT_SOURCE_DIR "/conformance/data/";

inline std::string read(const std::string& path) {
  const auto bytes = value_or_raise(formats::read_file(path));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The same graph in another dtype: what is f32 in a model is f64 for the truth, and the other way round.
inline std::string with_dtype(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

inline std::vector<std::byte> bytes_of(const Array& a) { return conformance::encode(a); }
inline conformance::Dims dims_of(const Shape& shape) {
  conformance::Dims out;
  for (const Dim d : shape) out.push_back(d.value());
  return out;
}

/// An imported model with everything that its graph reads.
struct Model {
  importer::Imported imported;
  std::vector<Array> operands;  // inputs, states, weights
};

inline Array array_of(const TensorType& type, std::span<const std::byte> bytes) {
  return conformance::decode(type.dtype, dims_of(type.shape), bytes);
}
inline Array converted(Array a, DType dtype) {
  a.dtype = dtype;
  if (is_float(dtype))
    for (auto& x : a.v) x = conformance::round_to(dtype, x);
  return a;
}

inline Model model_of(const std::string& ir_text, std::span<const formats::Safetensors> files,
                      const std::vector<Array>& inputs, const importer::Options& options = {}) {
  const auto ir = value_or_raise(importer::parse_model_ir(ir_text, "model_ir.json"));
  Model m{value_or_raise(importer::import_model(ir, files, options)), {}};
  const ir::Graph& g = *m.imported.graph;
  for (size_t i = 0; i < inputs.size(); ++i)
    m.operands.push_back(converted(inputs[i], g.types[static_cast<size_t>(g.inputs[i].value)].dtype));
  const auto add = [&](const std::string& name, int32_t value) {
    m.operands.push_back(array_of(g.types[static_cast<size_t>(value)], m.imported.weights.at(name).bytes));
  };
  for (const auto& s : g.states) add(s.name, s.before);
  for (const auto& w : g.weights) add(w.name, w.value);
  return m;
}

/// Its blobs lie in `m`.
inline program::CompiledProgram program_of(const Model& m, bool fuse = true) {
  const auto weights = [&](const std::string& name) -> Result<program::Blob> {
    const auto& bytes = m.imported.weights.at(name).bytes;
    return program::Blob{bytes.data(), bytes.size(), {}};
  };
  return value_or_raise(compiler::compile(*m.imported.graph, weights, {.fuse = fuse}));
}

// Compiled, written and read again.
inline std::shared_ptr<const program::CompiledProgram> read_again(const Model& m) {
  const std::string file = program::serialize(program_of(m));
  auto again = std::make_shared<const program::CompiledProgram>(
      value_or_raise(program::deserialize(program::Blob::copy_of(file.data(), file.size()))));
  raise_if(compiler::check_ops(*again));
  return again;
}
inline runtime::HostTensor host_tensor(const Array& a) {
  return {{a.dtype, {a.shape.begin(), a.shape.end()}}, bytes_of(a)};
}
inline std::vector<Array> host_arrays(const std::vector<runtime::HostTensor>& all) {
  std::vector<Array> out;
  for (const auto& t : all)
    out.push_back(conformance::decode(t.type.dtype, {t.type.shape.begin(), t.type.shape.end()}, t.bytes));
  return out;
}
/// The outputs of each of the runs of one session.
inline std::vector<std::vector<Array>> runs_of(const std::shared_ptr<const program::CompiledProgram>& program,
                                               const Model& m, const std::string& backend, size_t runs) {
  const auto session = value_or_raise(
      runtime::Session::create(program, value_or_raise(runtime::devices_for(backend, {})), {}));
  std::vector<runtime::HostTensor> inputs;
  for (size_t i = 0; i < program->inputs.size(); ++i) inputs.push_back(host_tensor(m.operands[i]));
  std::vector<std::vector<Array>> all(runs);
  for (auto& out : all) out = host_arrays(value_or_raise(session->run(inputs)));
  return all;
}
inline std::vector<Array> run_compiled(const Model& m, const std::string& backend) {
  return runs_of(read_again(m), m, backend, 1)[0];
}

inline void expect_within(const std::vector<Array>& got, const std::vector<Bounded>& bound, double slack) {
  ASSERT_EQ(got.size(), bound.size());
  for (size_t k = 0; k < got.size(); ++k) {
    const auto verdict = conformance::judge(got[k], bound[k], slack);
    EXPECT_TRUE(verdict.ok) << "output " << k << ": " << verdict.reason;
  }
}

// The CPU's, or those that WEFT_ZOO names: "cuda" or "cuda,native".
inline std::vector<std::string> zoo_backends() {
  const char* named = std::getenv("WEFT_ZOO");
  if (!named) return backends({"reference", "native", "openmp", "opencl", "far"});
  std::vector<std::string> all;
  std::istringstream words(named);
  for (std::string word; std::getline(words, word, ',');) all.push_back(word);
  return all;
}

}  // namespace weft::testing::imported
