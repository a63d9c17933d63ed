#include <array>

#include "python/src/module.h"
#include "python/src/object.h"

// What a call says that fits no signature, and one of an object that was never initialised. nanobind lists
// the signatures and the types of all arguments; weft/calls.py finds the argument that is wrong.
namespace weft::python {
namespace {

// nanobind calls what is bound by one of a few functions, to which each object of its points (PEP 590).
constexpr size_t kMost = 8;
std::array<vectorcallfunc, kMost> originals = {};

// The error of nanobind's is set. Only where a call fails is any of this done.
PyObject* explained(PyObject* f, PyObject* const* args, size_t n, PyObject* names) {
  if (!PyErr_ExceptionMatches(PyExc_TypeError)) return nullptr;
  nb::python_error error;
  const std::string said = nb::str(error.value()).c_str();
  if (said.find("(): incompatible function arguments.") == std::string::npos && said != kUnfit) {
    error.restore();
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    const auto count = static_cast<Py_ssize_t>(n & 0xffffffff);  // above are flags, also nanobind's own
    nb::list given;
    nb::dict named;
    for (Py_ssize_t i = 0; i < count; ++i) given.append(nb::borrow(args[i]));
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i)
      named[nb::borrow(PyTuple_GET_ITEM(names, i))] = nb::borrow(args[count + i]);
    const nb::object words = nb::module_::import_("weft.calls").attr("misfit")(nb::borrow(f), given, named);
    PyErr_SetObject(PyExc_TypeError, words.ptr());
    return nullptr;
  });
}

template <size_t I>
PyObject* call(PyObject* f, PyObject* const* args, size_t n, PyObject* names) {
  PyObject* const result = originals[I](f, args, n, names);
  return result ? result : explained(f, args, n, names);
}
constexpr auto calls = []<size_t... I>(std::index_sequence<I...>) {
  return std::array{call<I>...};
}(std::make_index_sequence<kMost>{});

void attach(nb::handle o) {
  const PyTypeObject* const type = Py_TYPE(o.ptr());
  const std::string_view name = type->tp_name;
  if (name != "nanobind.nb_func" && name != "nanobind.nb_method") return;
  auto& code =
      *reinterpret_cast<vectorcallfunc*>(reinterpret_cast<char*>(o.ptr()) + type->tp_vectorcall_offset);
  for (size_t i = 0; i < kMost; ++i) {
    if (code == calls[i]) return;
    if (!originals[i]) originals[i] = code;
    if (originals[i] != code) continue;
    code = calls[i];
    return;
  }
  throw Error(fail(Code::internal, "nanobind has more than {} ways to call a function: raise kMost", kMost));
}

void attach_all(nb::handle members) {
  for (const nb::handle o : nb::borrow<nb::iterable>(members.attr("values")())) {
    attach(o);
    if (!PyObject_TypeCheck(o.ptr(), &PyProperty_Type)) continue;
    attach(o.attr("fget"));
    attach(o.attr("fset"));
  }
}

}  // namespace

void bind_signatures(nb::module_& m) {
  for (const nb::handle module : {nb::handle(m), nb::handle(m.attr("_nn"))}) {
    attach_all(module.attr("__dict__"));
    for (const nb::handle o : nb::borrow<nb::iterable>(module.attr("__dict__").attr("values")()))
      if (nb::type_check(o)) attach_all(o.attr("__dict__"));
  }
  m.def(
      "_is_made", [](nb::handle o) { return !nb::inst_check(o) || nb::inst_ready(o); },
      nb::arg("object").none(), "Was the object initialised, so far as it is one of this extension's?");
}

}  // namespace weft::python
