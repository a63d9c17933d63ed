#include <nanobind/stl/vector.h>

#include <memory>

#include "eager/apply.h"
#include "python/src/made.h"
#include "python/src/module.h"
#include "python/src/object.h"
#include "weft/function.h"
#include "weft/recompute.h"

namespace weft::python {
namespace {

/// `with weft.no_grad():`. The modes of before are kept in order, so one object may be entered again inside
/// of itself.
class GradientMode {
 public:
  explicit GradientMode(bool on) : on_(on) {}
  void enter() {
    before_.push_back(eager::grad_enabled());
    eager::set_grad_enabled(on_);
  }
  void leave() {
    if (before_.empty()) throw Error(invalid("no_grad: left more often than it was entered"));
    eager::set_grad_enabled(before_.back());
    before_.pop_back();
  }

 private:
  bool on_;
  std::vector<bool> before_;
};

/// A Python object that C++ may drop without Python's lock.
std::shared_ptr<nb::object> shared(nb::object o) {
  return {new nb::object(std::move(o)), [](nb::object* held) {
            if (!Py_IsInitialized()) {
              (void)held->release();  // the interpreter has ended, and all objects with it
            } else {
              const Locked locked;
              held->reset();
            }
            delete held;
          }};
}

/// weft.Function.apply() calls it.
nb::object attached(const std::vector<Tensor>& inputs, const std::vector<Tensor>& results,
                    const std::vector<Tensor>& saved, nb::object rule) {
  const GradientRule run = [rule = shared(std::move(rule))](const std::vector<Tensor>& gradients,
                                                            const std::vector<Tensor>& kept) {
    const Locked locked;
    std::vector<Tensor> all;
    for (const nb::handle o : nb::borrow<nb::iterable>((*rule)(list_of(gradients), list_of(kept))))
      all.push_back(o.is_none() ? Tensor() : nb::cast<Tensor>(o));
    return all;
  };
  auto made = with_gradient(inputs, results, saved, run);
  return nb::steal(to_tuple(made));
}

/// weft.recompute() calls it, with a part that gives a list.
nb::object recomputed(nb::object part, const std::vector<Tensor>& inputs) {
  const ModelPart run = [part = shared(std::move(part))](const std::vector<Tensor>& in) {
    const Locked locked;
    std::vector<Tensor> all;
    for (const nb::handle o : nb::borrow<nb::iterable>((*part)(list_of(in))))
      all.push_back(nb::cast<Tensor>(o));
    return all;
  };
  auto made = recompute(run, inputs);
  return nb::steal(to_tuple(made));
}

}  // namespace

void bind_gradients(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<GradientMode>(m, "_GradientMode")
      .def(nb::init<bool>(), "on"_a)
      .def("__enter__",
           [](nb::handle self) {
             nb::cast<GradientMode&>(self).enter();
             return nb::borrow(self);
           })
      .def(
          "__exit__", [](GradientMode& g, nb::handle, nb::handle, nb::handle) { g.leave(); },
          nb::arg().none(), nb::arg().none(), nb::arg().none());
  m.def("_with_gradient", attached, "inputs"_a, "results"_a, "saved"_a, "rule"_a);
  m.def("_recompute", recomputed, "part"_a, "inputs"_a);
  m.def("is_grad_enabled", &eager::grad_enabled, "Does this thread record gradients?");
}

}  // namespace weft::python
