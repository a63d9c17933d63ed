#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "compiler/compile.h"
#include "eager/tensor_impl.h"
#include "import/import.h"
#include "jit/target.h"
#include "python/src/made.h"
#include "python/src/module.h"
#include "python/src/object.h"
#include "runtime/devices.h"
#include "runtime/session.h"
#include "weft/jit.h"
#include "weft/policy_scope.h"

// Compiled programs: of ATen graphs, and of files.
namespace weft::python {
namespace {

using namespace nb::literals;

struct ImportOptions {
  std::string name;
  std::map<std::string, std::string> tied;
  std::string backend;
  bool fuse = true;
};

Compiled import_aten(std::string_view graph, const std::map<std::string, Tensor>& weights,
                     const ImportOptions& o) {
  const auto model = value_or_raise(importer::parse_model_ir(graph, o.name));
  const formats::Safetensors file = in_memory(weights);
  const auto imported = std::make_shared<importer::Imported>(
      value_or_raise(importer::import_model(model, {&file, 1}, {.tied = o.tied})));
  const auto bytes_of = [&](const std::string& name) -> Result<program::Blob> {
    const auto& bytes = imported->weights.at(name).bytes;
    return program::Blob{bytes.data(), bytes.size(), imported};
  };
  auto program = std::make_shared<const program::CompiledProgram>(value_or_raise(compiler::compile(
      *imported->graph, bytes_of, {.name = o.name, .fuse = o.fuse, .has_kernel = kernels_of(o.backend)})));
  auto devices = value_or_raise(runtime::devices_for(o.backend, current_policy()));
  return Compiled(
      value_or_raise(runtime::Session::create(std::move(program), std::move(devices), current_policy())));
}

nb::object run_program(Compiled& program, const nb::args& inputs) {
  std::vector<Tensor> in, out;
  for (const nb::handle o : inputs) {
    if (!is_tensor(o.ptr())) {
      PyErr_Format(PyExc_TypeError, "a program takes tensors, got %s", Py_TYPE(o.ptr())->tp_name);
      throw nb::python_error();
    }
    in.push_back(tensor_in(o.ptr()));
  }
  {
    const Unlocked unlocked;
    out = program(in);
  }
  return nb::steal(to_tuple(out));
}

}  // namespace

void bind_programs(nb::module_& m) {
  const auto unlocked = nb::call_guard<Unlocked>();
  nb::class_<Compiled>(
      m, "Program",
      "A compiled program with the session that holds its states. Called with tensors, it gives a tuple of "
      "tensors; sizes of\n"
      "the inputs give the symbols' values. Nothing is copied where they are on the program's device.\n\n"
      "One run at a time: a second thread gets an error.")
      .def("__call__", run_program, nb::sig("def __call__(self, *inputs: Tensor) -> tuple[Tensor, ...]"))
      .def("save", &Compiled::save, "path"_a, unlocked,
           "Writes the program with the present values of its states.")
      .def("text", &Compiled::text, unlocked, "The program, one call a line.")
      .def("schedule_text", &Compiled::schedule_text, unlocked,
           "Kernels, places and reasons, for the sizes of the last run.")
      .def(
          "state",
          [](const Compiled& c, const std::string& name) { return nb::steal(to_object(c.state(name))); },
          "name"_a, nb::sig("def state(self, name: str) -> Tensor"), "The present value of a state.")
      .def("state_names", &Compiled::state_names, "The names of its states.");
  m.def(
      "import_aten",
      [](const nb::bytes& graph, const std::map<std::string, Tensor>& weights, const std::string& name,
         const std::map<std::string, std::string>& tied, const std::string& backend, bool fuse) {
        const Unlocked released;
        return import_aten({graph.c_str(), graph.size()}, weights, {name, tied, backend, fuse});
      },
      "graph"_a, "weights"_a, "name"_a = "program", "tied"_a = std::map<std::string, std::string>(),
      "backend"_a = "", "fuse"_a = true,
      "A program of an ATen graph (model_ir.json, as PyPI's pytorch-ir writes it) and its weights by "
      "name.\n\n"
      "Errors   weft.Unsupported, which lists every op that is not known, with its nodes; "
      "weft.InvalidArgument, which lists the\n"
      "         weights that are missing or of another type.");
  m.def(
      "load_program",
      [](const std::string& path, const std::string& backend) {
        const Unlocked released;
        return load_program(path, {.backend = backend});
      },
      "path"_a, "backend"_a = "", "Opens a program file.");
}

}  // namespace weft::python
