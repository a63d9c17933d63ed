#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <nanobind/trampoline.h>

#include "eager/trace_state.h"
#include "python/src/convert.h"
#include "python/src/elements.h"
#include "python/src/fields.h"
#include "python/src/made.h"
#include "python/src/module.h"
#include "weft/state_dict.h"

// weft.nn.Module: the C++ class, of which a Python class is one by what it sets in __init__.
namespace weft::python {
namespace {

using namespace nb::literals;

/// A parameter or state of a Python module, declared where the module is made and given elements by build().
struct Slot {
  Tensor tensor;
  std::vector<int64_t> shape;
  nn::Initial initial;
  std::optional<DType> dtype;  // of a state; a parameter has the model's
  bool random = false;

  void set(const Tensor& t, const std::string& what) { set_field(tensor, t, !dtype && !random, what); }
  void declare(nn::Fields& f, const std::string& name) {
    if (random) return f.random(name, tensor);
    if (dtype) return f.state(name, tensor, shape, *dtype, initial);
    f.parameter(name, tensor, shape, initial);
  }
};

/// A module that is a Python class. Its fields are what `_members` of the object holds, in the order in which
/// they were set (python/weft/nn/module.py).
class PythonModule : public nn::Module {
 public:
  NB_TRAMPOLINE(nn::Module);

  void fields(nn::Fields& f) override {
    const Locked locked;
    const nb::object members = nb_trampoline.base().attr("_members");
    for (const auto& [key, value] : nb::cast<nb::dict>(members))
      declare(f, nb::cast<std::string>(key), value);
  }

  nb::object call(const nb::args& args, const nb::kwargs& named) {
    const Scope here = scope();
    if (eager::active_trace()) nb::module_::import_("weft.nn.module").attr("_called")(nb_trampoline.base());
    return nb_trampoline.base().attr("forward")(*args, **named);
  }

 private:
  static void declare(nn::Fields& f, const std::string& name, nb::handle value) {
    if (nb::isinstance<Slot>(value)) return nb::cast<Slot&>(value).declare(f, name);
    if (nb::isinstance<nn::Module>(value)) return child(f, name, value);
    // What a list or dict held when it was set may have changed since.
    const nb::object parts = nb::module_::import_("weft.nn.module").attr("_parts_of")(name, value);
    for (const nb::handle pair : nb::borrow<nb::iterable>(parts))
      child(f, name + "." + nb::cast<std::string>(pair[0]), pair[1]);
  }

  static void child(nn::Fields& f, const std::string& name, nb::handle module) {
    if (!nb::inst_ready(module))
      raise_type_error(
          fmt::format("part '{}' is a {} that was never initialised: its __init__() must call "
                      "super().__init__() first",
                      name, Py_TYPE(module.ptr())->tp_name));
    f.child(name, nb::cast<nn::Module&>(module));
  }
};

/// Names, and tensors of fields.
class Listed : public nn::Fields {
 public:
  std::vector<std::pair<std::string, Tensor>> all;
  bool trained = true;

 protected:
  void field(nn::Field& f) override {
    if (f.trained == trained && !f.tied) all.emplace_back(f.name, f.tensor);
  }
};
/// What a module has, as it is printed: a line for each module that has tensors.
class Printed : public nn::Fields {
 public:
  std::vector<std::pair<std::string, std::string>> lines;  // of modules, what is in each

 protected:
  void field(nn::Field& f) override {
    const size_t dot = f.name.rfind('.');
    const std::string in = dot == std::string::npos ? "" : f.name.substr(0, dot);
    if (lines.empty() || lines.back().first != in) lines.emplace_back(in, "");
    std::string& s = lines.back().second;
    s += fmt::format("{}{} {}{}", s.empty() ? "" : ", ", f.name.substr(dot + 1),
                     name(f.tensor ? f.tensor.dtype() : f.dtype), text(f.shape));
  }
};
// A module that is not whole is printed as well: its name stands in messages.
std::string printed_module(nb::handle self) {
  const std::string type = nb::str(nb::type_name(self.type())).c_str();
  const std::string name = type.substr(type.rfind('.') + 1);
  Printed walk;
  try {
    nb::cast<nn::Module&>(self).fields(walk);
  } catch (const Error&) {
    return name + "(...)";
  } catch (nb::python_error&) {
    return name + "(...)";
  }
  if (walk.lines.empty()) return name + "()";
  if (walk.lines.size() == 1 && walk.lines[0].first.empty()) return name + "(" + walk.lines[0].second + ")";
  std::string s = name + "(\n";
  for (const auto& [in, what] : walk.lines) s += "  " + (in.empty() ? what : in + ": " + what) + "\n";
  return s + ")";
}

/// The tensors that fields have, before build() gives them others.
class Held : public nn::Fields {
 public:
  std::vector<Tensor> all;

 protected:
  void field(nn::Field& f) override {
    if (f.tensor) all.push_back(f.tensor);
  }
};
void build_anew(nn::Module& m, const nn::BuildOptions& options) {
  Held before;
  m.fields(before);
  nn::build(m, options);
  for (const Tensor& t : before.all) field_left(t);
}
/// Another module takes its place in the one around it.
void module_left(nn::Module& m) {
  Held before;
  try {
    m.fields(before);
  } catch (const std::exception&) {  // was never whole, so that no function read it
    return;
  }
  for (const Tensor& t : before.all) field_left(t);
}
nb::list named_fields(nn::Module& m, bool trained) {
  Listed walk;
  walk.trained = trained;
  m.fields(walk);
  nb::list list;
  for (auto& [name, tensor] : walk.all) list.append(nb::make_tuple(name, nb::steal(to_object(tensor))));
  return list;
}

// Tensors, and arrays of NumPy's and other libraries, by name.
std::map<std::string, Tensor> tensors_by_name(nb::handle given) {
  if (!nb::hasattr(given, "items"))
    raise_type_error(
        fmt::format("load_state_dict() takes a dict of tensors or arrays by name, got a {}; load() "
                    "takes the path of a file",
                    Py_TYPE(given.ptr())->tp_name));
  std::map<std::string, Tensor> all;
  for (const nb::handle pair : nb::borrow<nb::iterable>(given.attr("items")())) {
    const nb::object key = pair[0], value = pair[1];
    if (!nb::isinstance<nb::str>(key))
      raise_type_error(fmt::format("load_state_dict(): a name must be a str, got {}",
                                   nb::cast<std::string>(nb::repr(key))));
    const auto name = nb::cast<std::string>(key);
    const bool array = PyObject_CheckBuffer(value.ptr()) || nb::hasattr(value, "__dlpack__");
    if (!is_tensor(value.ptr()) && !array)
      raise_type_error(fmt::format("load_state_dict(): '{}' must be a Tensor or an array, got {}", name,
                                   Py_TYPE(value.ptr())->tp_name));
    all.emplace(name, is_tensor(value.ptr()) ? tensor_in(value.ptr()) : tensor_from(value, {}, ""));
  }
  return all;
}

nb::dict report_of(const nn::LoadReport& report) {
  nb::dict d;
  d["missing"] = report.missing, d["unexpected"] = report.unexpected;
  return d;
}

std::vector<int64_t> sizes_of(nb::handle shape) {
  std::vector<int64_t> sizes;
  for (const Dim d : dims_from(shape.ptr(), "shape")) sizes.push_back(d.value());
  return sizes;
}

void add_functions(nb::class_<nn::Module, PythonModule>& c) {
  c.def(
       "build",
       [](nb::handle self, uint64_t seed, nb::handle dtype) {
         build_anew(nb::cast<nn::Module&>(self), {.seed = seed, .dtype = dtype_from(dtype.ptr())});
         return nb::borrow(self);
       },
       "seed"_a = 0, "dtype"_a = "f32",
       nb::sig("def build(self, seed: int = 0, dtype: DTypeLike = 'f32') -> Module"),
       "Creates all tensors, on the default backend, with their names and initial values, and gives the "
       "module back. The values depend\n"
       "on the seed, the name and the shape alone.")
      .def(
          "parameters", [](const nn::Module& m) { return list_of(nn::parameters(m)); },
          nb::sig("def parameters(self) -> list[Tensor]"),
          "In the order in which modules name them, a tied one once.")
      .def(
          "states", [](const nn::Module& m) { return list_of(nn::states(m)); },
          nb::sig("def states(self) -> list[Tensor]"),
          "What changes, but not by a gradient: running statistics, random states.")
      .def(
          "named_parameters", [](nn::Module& m) { return named_fields(m, true); },
          nb::sig("def named_parameters(self) -> list[tuple[str, Tensor]]"),
          "Names from the root, and parameters.")
      .def("parameter_count", &nn::parameter_count, "The number of trained elements.")
      .def(
          "train",
          [](nb::handle self, bool on) {
            nn::set_training(nb::cast<nn::Module&>(self), on);
            return nb::borrow(self);
          },
          "on"_a = true, nb::sig("def train(self, on: bool = True) -> Module"),
          "Sets training mode here and everywhere below.")
      .def(
          "eval",
          [](nb::handle self) {
            nn::set_training(nb::cast<nn::Module&>(self), false);
            return nb::borrow(self);
          },
          nb::sig("def eval(self) -> Module"), "train(False).");
}

void add_files(nb::class_<nn::Module, PythonModule>& c) {
  c.def(
       "state_dict", [](const nn::Module& m) { return nn::state_dict(m); },
       "Parameters and states by name: the module's own tensors, not copies.")
      .def(
          "load_state_dict",
          [](nn::Module& m, nb::handle tensors, bool strict) {
            return report_of(nn::load_state_dict(m, tensors_by_name(tensors), {.strict = strict}));
          },
          "tensors"_a, "strict"_a = true,
          nb::sig("def load_state_dict(self, tensors: Mapping[str, Any], strict: bool = True) -> "
                  "dict[str, list[str]]"),
          "Gives the module the elements of tensors, or of arrays, by name; all is checked before anything "
          "changes. "
          "Returns what had no counterpart:\n"
          "{\"missing\": [...], \"unexpected\": [...]}.\n\n"
          "Errors   weft.InvalidArgument, with all names, where a shape or dtype does not fit, and with "
          "`strict` where a name is missing or\n"
          "         unexpected.")
      .def(
          "save", [](const nn::Module& m, const std::filesystem::path& path) { nn::save(m, path.string()); },
          "path"_a, "Writes state_dict() as a safetensors file, whole or not at all.")
      .def(
          "load",
          [](nn::Module& m, const std::filesystem::path& path, bool strict) {
            return report_of(nn::load(m, path.string(), {.strict = strict}));
          },
          "path"_a, "strict"_a = true, "load_state_dict() from a safetensors file, one tensor at a time.");
}

}  // namespace

void bind_nn_module(nb::module_& m) {
  nb::class_<nn::Initial>(m, "Initial", "The first elements of a tensor.")
      .def_static("constant", &nn::Initial::constant, "value"_a, "All the same.")
      .def_static("normal", &nn::Initial::normal, "deviation"_a, "Normal, with mean 0.")
      .def_static("uniform", &nn::Initial::uniform, "bound"_a, "Evenly from [-bound, bound).");
  nb::class_<Slot>(m, "Parameter",
                   "A parameter of a module: set in __init__, it becomes a field; afterwards the attribute "
                   "is the tensor.\n\n"
                   "    self.scale = nn.Parameter(width, nn.Initial.constant(1))")
      .def(
          "__init__",
          [](Slot* slot, nb::handle shape, nn::Initial initial) {
            new (slot) Slot{{}, sizes_of(shape), initial, {}};
          },
          "shape"_a, "initial"_a = nn::Initial(),
          nb::sig("def __init__(self, shape: ShapeLike, initial: Initial = ...) -> None"))
      .def_prop_rw(
          "tensor", [](const Slot& s) { return nn::built(s.tensor, "a parameter"); },
          [](Slot& s, const Tensor& t) { s.set(t, "the tensor of a Parameter"); }, "Its elements.")
      .def("_set", &Slot::set, "tensor"_a, "what"_a);
  m.def(
      "State",
      [](nb::handle shape, nb::handle dtype, nn::Initial initial) {
        return Slot{{}, sizes_of(shape), initial, dtype_from(dtype.ptr())};
      },
      "shape"_a, "dtype"_a = "f32", "initial"_a = nn::Initial(),
      nb::sig("def State(shape: ShapeLike, dtype: DTypeLike = 'f32', initial: Initial = ...) -> Parameter"),
      "A state of a module: what changes, but not by a gradient. Set in __init__, as a Parameter.");
  m.def(
      "RandomState", [] { return Slot{{}, {}, {}, {}, true}; }, nb::sig("def RandomState() -> Parameter"),
      "The state (key, counter) of random ops. Set in __init__, as a Parameter.");
  nb::class_<nn::Module, PythonModule> c(
      m, "Module", nb::dynamic_attr(),
      "Part of a model. A class of one's own sets its parts in __init__ and computes in forward():\n\n"
      "    class Scale(nn.Module):\n"
      "        def __init__(self, width):\n"
      "            super().__init__()\n"
      "            self.factor = nn.Parameter(width, nn.Initial.constant(1))\n\n"
      "        def forward(self, x):\n"
      "            return x * self.factor\n\n"
      "    model = Scale(3).build(seed=1)");
  c.def(nb::init<>())
      .def("__repr__", printed_module)
      .def_rw("training", &nn::Module::training,
              "Is dropout on, do norms take the batch's own statistics? train() sets it everywhere below.")
      .def(
          "__call__",
          [](nn::Module& self, const nb::args& args,
             const nb::kwargs& named) {  // C++ layers have a __call__ of their own
            return dynamic_cast<PythonModule&>(self).call(args, named);
          },
          nb::sig("def __call__(self, *args: Any, **kwargs: Any) -> Any"));
  m.def("_left", module_left, "module"_a);
  add_functions(c);
  add_files(c);
}

}  // namespace weft::python
