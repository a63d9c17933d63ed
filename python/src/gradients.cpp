#include <optional>
#include <vector>

#include "eager/apply.h"
#include "python/src/module.h"
#include "python/src/object.h"

namespace weft::python {
namespace {

/// `with weft.no_grad():`. The modes of before are kept in order, so one object may be entered again inside of itself.
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

}  // namespace

void bind_gradients(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<GradientMode>(m, "_GradientMode")
      .def(nb::init<bool>(), "on"_a)
      .def("__enter__", [](nb::handle self) {
        nb::cast<GradientMode&>(self).enter();
        return nb::borrow(self);
      })
      .def("__exit__", [](GradientMode& g, nb::handle, nb::handle, nb::handle) { g.leave(); }, nb::arg().none(), nb::arg().none(), nb::arg().none());
  m.def("is_grad_enabled", &eager::grad_enabled, "Does this thread record gradients?");
}

}  // namespace weft::python
