#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/convert.h"
#include "python/src/made.h"
#include "python/src/module.h"
#include "weft/optim.h"

// Optimisers and schedules.
namespace weft::python {
namespace {

using namespace nb::literals;

// States are named after parameters, so one without a name is named by its place in the list.
std::vector<Tensor> tensors_of(nb::handle list) {
  if (is_tensor(list.ptr())) raise_type_error("an optimiser takes a list of parameters, got one Tensor");
  std::vector<Tensor> all;
  for (const nb::handle o : nb::borrow<nb::iterable>(list)) {
    if (!is_tensor(o.ptr()))
      raise_type_error(
          fmt::format("a parameter of an optimiser must be a Tensor, got {}", Py_TYPE(o.ptr())->tp_name));
    Tensor& t = all.emplace_back(tensor_in(o.ptr()));
    if (t.name().empty()) t.named(fmt::format("parameter{}", all.size() - 1));
  }
  return all;
}

DType rate_dtype(const std::vector<Tensor>& parameters) {
  return !parameters.empty() && parameters[0].dtype() == DType::f64 ? DType::f64 : DType::f32;
}

/// An optimiser that knows the dtype of its rate, so that step(1e-3) may be written.
template <class O>
class Rated : public O {
 public:
  template <class Config>
  Rated(const std::vector<Tensor>& parameters, const Config& config)
      : O(parameters, config), dtype_(rate_dtype(parameters)) {}

  void step_by(nb::handle rate) {
    const Tensor given = nb::isinstance<Tensor>(rate) ? nb::cast<Tensor>(rate)
                                                      : Tensor::scalar(nb::cast<double>(rate), dtype_);
    const Unlocked unlocked;
    this->step(given);
  }

 private:
  DType dtype_;
};

template <class O>
nb::class_<Rated<O>, nn::Optimizer> optimizer(nb::module_& m, const char* name, const char* doc) {
  nb::class_<Rated<O>, nn::Optimizer> c(m, name, nb::is_final(), doc);
  c.def("step", &Rated<O>::step_by, "rate"_a, nb::sig("def step(self, rate: float | Tensor) -> None"),
        "Takes one step of size `rate` along the gradients that backward() left, and clears them.");
  return c;
}

}  // namespace

void bind_optim(nb::module_& m) {
  nb::class_<nn::Optimizer>(m, "Optimizer", nb::is_final(),
                            "Changes parameters along their gradients, in place. A parameter in f16 or bf16 "
                            "has a master in f32 among the states.")
      .def("clear_gradients", &nn::Optimizer::clear_gradients,
           "Forgets what backward() left: of a step that is not to be taken.")
      .def(
          "states", [](const nn::Optimizer& o) { return list_of(o.states()); },
          nb::sig("def states(self) -> list[Tensor]"),
          "Masters, moments, velocities: what a checkpoint keeps besides the model.");
  optimizer<nn::AdamW>(
      m, "AdamW", "Keeps two moving averages for every parameter, of its gradient and of the square of that.")
      .def(
          "__init__",
          [](Rated<nn::AdamW>* o, nb::handle parameters, double beta1, double beta2, double epsilon,
             double weight_decay, double clip) {
            new (o) Rated<nn::AdamW>(tensors_of(parameters),
                                     nn::AdamWConfig{beta1, beta2, epsilon, weight_decay, clip});
          },
          "parameters"_a, "beta1"_a = 0.9, "beta2"_a = 0.99, "epsilon"_a = 1e-8, "weight_decay"_a = 0.01,
          "clip"_a = 0.0,
          nb::sig("def __init__(self, parameters: Sequence[Tensor], beta1: float = 0.9, beta2: float = 0.99, "
                  "epsilon: float = 1e-8, weight_decay: float = "
                  "0.01, clip: float = 0.0) -> None"),
          "`clip` is the largest norm that all gradients together may have; 0: any.");
  optimizer<nn::SGD>(m, "SGD",
                     "Gradient descent with momentum: velocity = momentum velocity + gradient, and the step "
                     "is the velocity.")
      .def(
          "__init__",
          [](Rated<nn::SGD>* o, nb::handle parameters, double momentum, bool nesterov, double weight_decay,
             double clip) {
            new (o)
                Rated<nn::SGD>(tensors_of(parameters), nn::SGDConfig{momentum, nesterov, weight_decay, clip});
          },
          "parameters"_a, "momentum"_a = 0.0, "nesterov"_a = false, "weight_decay"_a = 0.0, "clip"_a = 0.0,
          nb::sig("def __init__(self, parameters: Sequence[Tensor], momentum: float = 0.0, nesterov: bool = "
                  "False, weight_decay: float = 0.0, clip: float "
                  "= 0.0) -> None"));
  nb::enum_<nn::ScheduleKind>(m, "ScheduleKind", "How the rate goes down.")
      .value("constant", nn::ScheduleKind::constant)
      .value("linear", nn::ScheduleKind::linear)
      .value("cosine", nn::ScheduleKind::cosine);
  nb::class_<nn::Schedule>(
      m, "Schedule", "The rate over a run: up in even steps while it warms up, and down to a part of it.")
      .def(
          "__init__",
          [](nn::Schedule* s, nn::ScheduleKind kind, double rate, int64_t warmup, double least) {
            new (s) nn::Schedule{kind, rate, warmup, least};
          },
          "kind"_a = nn::ScheduleKind::cosine, "rate"_a = 1e-3, "warmup"_a = 0, "least"_a = 0.1)
      .def("at", &nn::Schedule::at, "step"_a, "done"_a,
           "Of a step, counted from 0, when a part `done` of the run, from 0 to 1, is over.");
}

}  // namespace weft::python
