#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>

#include "compiler/compile.h"
#include "eager/tensor_impl.h"
#include "import/import.h"
#include "jit/target.h"
#include "lab/vectors.h"
#include "python/src/made.h"
#include "python/src/module.h"
#include "python/src/object.h"
#include "weft/jit.h"
#include "weft/policy_scope.h"

// Program files with tests: written of ATen graphs, and verified.
namespace weft::python {
namespace {

using namespace nb::literals;

// The test's inputs are the ones that the model was exported with, which it surely takes.
void add_test(program::CompiledProgram& p, const std::vector<Tensor>& inputs) {
  std::vector<runtime::HostTensor> in;
  for (const Tensor& t : inputs) in.push_back({{t.dtype(), t.sizes()}, t.to_bytes()});
  if (value_or_raise(lab::work_of_test(p, in)) > lab::kMostTestWork) return;
  p.tests.push_back(value_or_raise(lab::make_test(p, in)));
}

struct Written {
  std::vector<std::string> notes;
  size_t tests = 0;
};
Written write_aten(std::string_view graph, const std::map<std::string, Tensor>& weights,
                   const std::string& name, const std::string& path,
                   const std::optional<std::vector<Tensor>>& inputs) {
  const auto model = value_or_raise(importer::parse_model_ir(graph, name));
  const formats::Safetensors file = in_memory(weights);
  const auto imported =
      std::make_shared<importer::Imported>(value_or_raise(importer::import_model(model, {&file, 1})));
  const auto bytes_of = [&](const std::string& weight) -> Result<program::Blob> {
    const auto& bytes = imported->weights.at(weight).bytes;
    return program::Blob{bytes.data(), bytes.size(), imported};
  };
  auto program = value_or_raise(
      compiler::compile(*imported->graph, bytes_of, {.name = name, .has_kernel = kernels_of("")}));
  if (inputs) add_test(program, *inputs);
  raise_if(program::write_file(program, path));
  return {imported->notes, program.tests.size()};
}

nb::list verify(const std::string& path, const std::string& backend) {
  std::vector<lab::Verified> all;
  {
    const nb::gil_scoped_release unlocked;
    const auto program = value_or_raise(compiler::read_file(path));
    if (program.tests.empty())
      throw Error(invalid(
          "{} carries no tests; weft.export(..., path=...) and `weft compile --tests N` write them", path));
    all = value_or_raise(lab::run_tests(program, backend, current_policy()));
  }
  nb::list rows;
  for (const auto& v : all) {
    nb::dict row, sizes;
    for (const auto& y : v.sizes) sizes[y.name.c_str()] = y.min;
    row["test"] = v.test;
    row["sizes"] = sizes;
    row["right"] = v.wrong.empty();
    row["worst"] = v.worst;
    row["wrong"] = v.wrong;
    rows.append(row);
  }
  return rows;
}

nb::list ports(const std::vector<InputSpec>& all) {
  nb::list rows;
  for (const auto& port : all) rows.append(nb::make_tuple(port.name, weft::text(port.type)));
  return rows;
}

}  // namespace

void bind_exported(nb::module_& m) {
  m.def(
      "_write_aten",
      [](const nb::bytes& graph, const std::map<std::string, Tensor>& weights, const std::string& name,
         const std::string& path, const std::optional<std::vector<Tensor>>& inputs) {
        const nb::gil_scoped_release unlocked;
        const Written w = write_aten({graph.c_str(), graph.size()}, weights, name, path, inputs);
        return w.notes;
      },
      "graph"_a, "weights"_a, "name"_a, "path"_a, "inputs"_a = nb::none());
  m.def("verify", verify, "path"_a, "backend"_a = "",
        "Runs the tests that a program file carries on a backend: a list of dicts with `test`, `sizes`, "
        "`right`, `worst`, the "
        "largest\nerror in units of what is allowed, and `wrong`, what was wrong.\n\n"
        "Errors   weft.InvalidArgument for a file without tests.");
  m.def(
      "_ports", [](const Compiled& c) { return nb::make_tuple(ports(c.inputs()), ports(c.outputs())); },
      "program"_a);
}

}  // namespace weft::python
