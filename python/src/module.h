#pragma once
#include <nanobind/nanobind.h>

// One function a file, each of which adds its part to the module weft._weft.
namespace weft::python {

void bind_errors(nanobind::module_& m);
void bind_lines();
void bind_tensor(nanobind::module_& m);
void bind_ops(nanobind::module_& m);
void bind_lists(nanobind::module_& m);
void bind_aten(nanobind::module_& m);
void bind_arrays(nanobind::module_& m);
void bind_backends(nanobind::module_& m);
void bind_policies(nanobind::module_& m);
void bind_files(nanobind::module_& m);
void bind_programs(nanobind::module_& m);
void bind_compiled(nanobind::module_& m);
void bind_exported(nanobind::module_& m);
void bind_gradients(nanobind::module_& m);

// Of weft._weft._nn.
void bind_nn_module(nanobind::module_& m);
void bind_nn_layers(nanobind::module_& m);
void bind_optim(nanobind::module_& m);
void bind_text(nanobind::module_& m);
void bind_generate(nanobind::module_& m);
void bind_training(nanobind::module_& m);

// Of weft._weft._lab.
void bind_lab(nanobind::module_& m);
void bind_lab_worker(nanobind::module_& m);

/// Of all that the others have bound; the last to be called.
void bind_signatures(nanobind::module_& m);

}  // namespace weft::python
