#include "python/src/module.h"
#include "python/src/object.h"

namespace weft::python {
namespace {

/// A class for each code, below weft.Error and below what Python itself calls such a failure.
struct Kind {
  Code code;
  const char* name;
  PyObject* also;
  const char* doc;
};

PyObject* error_class = nullptr;
PyObject* index_class = nullptr;
PyObject* classes[10] = {};

PyObject* make_class(const char* name, const char* doc, PyObject* bases) {
  const std::string full = std::string("weft.") + name;
  return PyErr_NewExceptionWithDoc(full.c_str(), doc, bases, nullptr);
}

// What errors tell a C++ program to write, and how Python's programs write it.
constexpr std::pair<std::string_view, std::string_view> kWords[] = {
    {"nn::build(model)", "model.build()"},
    {"set_training(model, false)", "model.eval()"},
    {"cast(x, DType::", "weft.cast(x, weft."},
    {"DType::", "weft."},
    {"Policy::", "weft.Policy."},
    {"under NoGrad", "under weft.no_grad()"},
    {"a compiled program (take_captured)",
     "a compiled program (of weft.compile, until clear() of the function, or of take_weights)"},
    {"take_captured", "take_weights"},
    {"ask it to keep the history", "give that one retain_graph=True"},
    {"Tensor::scalar", "weft.tensor"},
    {"Tensor::of", "weft.tensor"},
};

// What kernels say of a number that indexes no element, as they meet it.
bool is_about_index(const Error& e) {
  const std::string_view message = e.status().message();
  const size_t at = message.find(": index ");
  return e.status().code() == Code::device && at != std::string_view::npos &&
         message.find(" outside [", at) != std::string_view::npos;
}

void set_error(const Error& e) {
  const auto code = static_cast<size_t>(e.status().code());
  PyObject* type = code < std::size(classes) && classes[code] ? classes[code] : error_class;
  if (is_about_index(e)) type = index_class;
  const std::string message = in_python(e.status().message());
  // A path or a text in it may be no UTF-8.
  const nb::object words = nb::steal(
      PyUnicode_DecodeUTF8(message.data(), static_cast<Py_ssize_t>(message.size()), "backslashreplace"));
  if (!words.is_valid()) return;
  const nb::object value = nb::steal(PyObject_CallOneArg(type, words.ptr()));
  if (!value.is_valid()) return;
  PyErr_SetObject(type, value.ptr());
}

}  // namespace

std::string in_python(std::string text) {
  for (const auto& [word, ours] : kWords)
    for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += ours.size())
      text.replace(at, word.size(), ours);
  return text;
}

void set_python_error() {
  try {
    throw;
  } catch (nb::python_error& e) {
    e.restore();
  } catch (const nb::builtin_exception& e) {
    PyErr_SetString(e.type() == nb::exception_type::index_error   ? PyExc_IndexError
                    : e.type() == nb::exception_type::value_error ? PyExc_ValueError
                    : e.type() == nb::exception_type::type_error  ? PyExc_TypeError
                                                                  : PyExc_RuntimeError,
                    e.what());
  } catch (const Error& e) {
    set_error(e);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::bad_cast&) {
    PyErr_SetString(PyExc_TypeError, kUnfit);
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
}

void bind_errors(nb::module_& m) {
  error_class =
      make_class("Error", "What Weft refuses or fails at. `code` says which kind of failure it is.", nullptr);
  m.attr("Error") = nb::borrow(error_class);
  const Kind kinds[] = {
      {Code::invalid_argument, "InvalidArgument", PyExc_ValueError, "What no backend could serve."},
      {Code::unsupported, "Unsupported", PyExc_NotImplementedError, "Valid, but nothing here can do it."},
      {Code::out_of_memory, "OutOfMemory", PyExc_MemoryError, "A device has no memory left for it."},
      {Code::unavailable, "Unavailable", PyExc_OSError,
       "A library, device or file that should be there is not."},
      {Code::corrupt, "Corrupt", PyExc_ValueError, "Data that fails its integrity check."},
      {Code::io, "IoError", PyExc_OSError, "A file that can't be read or written."},
      {Code::version, "VersionMismatch", PyExc_RuntimeError, "Two sides that do not speak the same version."},
      {Code::device, "DeviceError", PyExc_RuntimeError, "A device reported an error while running."},
      {Code::internal, "InternalError", PyExc_RuntimeError, "A mistake in Weft."},
  };
  error_class&& PyObject_SetAttrString(error_class, "code", Py_None);
  for (const Kind& k : kinds) {
    const nb::object bases = nb::make_tuple(nb::borrow(error_class), nb::borrow(k.also));
    PyObject*& type = classes[static_cast<size_t>(k.code)] = make_class(k.name, k.doc, bases.ptr());
    m.attr(k.name) = nb::borrow(type);
    nb::borrow(type).attr("code") = code_name(k.code);
  }
  const nb::object bases =
      nb::make_tuple(nb::borrow(classes[static_cast<size_t>(Code::device)]), nb::borrow(PyExc_IndexError));
  index_class =
      make_class("IndexOutOfRange", "A kernel met an index that is outside of its axis.", bases.ptr());
  m.attr("IndexOutOfRange") = nb::borrow(index_class);
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const Error& e) {
      set_error(e);
    } catch (const std::bad_cast&) {
      PyErr_SetString(PyExc_TypeError, kUnfit);
    }
  });
}

}  // namespace weft::python
