#include "python/src/module.h"

#include "python/src/convert.h"
#include "weft/weft.h"

// weft._weft: all of Weft that Python sees. The package in python/weft gives it names.
namespace nb = nanobind;

NB_MODULE(_weft, m) {
  using namespace weft::python;
  m.doc() = "The compiled part of weft; `import weft` is how it is used.";
  m.attr("__version__") = weft_version();
  nb::set_leak_warnings(false);  // dtypes and functions of ops live as long as the process
  bind_errors(m);
  bind_lines();
  bind_dtypes(m);
  bind_tensor(m);
  bind_ops(m);
  bind_lists(m);
  bind_arrays(m);
  bind_backends(m);
  bind_policies(m);
  bind_files(m);
  bind_programs(m);
  bind_compiled(m);
  bind_aten(m);
  bind_exported(m);
  bind_gradients(m);
  nb::module_ nn = m.def_submodule("_nn", "Modules, layers, models, optimisers.");
  bind_nn_module(nn);
  bind_nn_layers(nn);
  bind_optim(nn);
  bind_text(nn);
  bind_generate(nn);
  bind_training(nn);
  nb::module_ lab = m.def_submodule("_lab", "The kernel lab; weft.lab is how it is used.");
  bind_lab(lab);
  bind_signatures(m);
}
