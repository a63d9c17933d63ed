#include "python/src/convert.h"

#include <array>
#include <string>

#include "base/element.h"
#include "weft/ops.h"

namespace weft::python {
namespace {

/// What Python knows as weft.dtype: one object for each dtype.
struct DTypeObject {
  DType dtype;
};
std::array<PyObject*, kDTypeCount> dtype_objects = {};

// Of NumPy and PyTorch, in the order of DType.
constexpr const char* kOtherNames[kDTypeCount] = {
    "float64", "float32", "float16",       "bfloat16",    "int32", "int64", "uint32",
    "uint64",  "bool",    "float8_e4m3fn", "float8_e5m2", "int8",  "uint8"};

std::optional<DType> dtype_called(std::string_view name) {
  if (name.starts_with("torch.")) name.remove_prefix(6);
  for (int i = 0; i < kDTypeCount; ++i)
    if (name == kDTypes[i].name || name == kOtherNames[i]) return static_cast<DType>(i);
  if (name == "half") return DType::f16;
  if (name == "int" || name == "long") return DType::i64;
  if (name == "float") return DType::f32;
  return {};
}

// "float32" of numpy.dtype("float32"), of the class numpy.float32 and of torch.float32.
std::string name_of(nb::handle o) {
  if (nb::isinstance<nb::str>(o)) return nb::cast<std::string>(o);
  const char* const field = PyType_Check(o.ptr()) ? "__name__" : "name";
  if (nb::hasattr(o, field) && nb::isinstance<nb::str>(o.attr(field)))
    return nb::cast<std::string>(o.attr(field));
  return nb::cast<std::string>(nb::str(o));
}

}  // namespace

void raise_type_error(const std::string& message) {
  PyErr_SetString(PyExc_TypeError, message.c_str());
  throw nb::python_error();
}

DType dtype_from(PyObject* o) {
  if (const DTypeObject* d = nullptr; nb::try_cast(nb::handle(o), d, false) && d) return d->dtype;
  const std::string name = name_of(o);
  if (const auto dtype = dtype_called(name)) return *dtype;
  std::string all;
  for (const auto& i : kDTypes) all += std::string(all.empty() ? "" : ", ") + i.name;
  raise_type_error(fmt::format("'{}' is no dtype; there are {}", name, all));
}

PyObject* dtype_object(DType dtype) {
  PyObject* o = dtype_objects[static_cast<size_t>(dtype)];
  Py_INCREF(o);
  return o;
}

void bind_dtypes(nb::module_& m) {
  nb::class_<DTypeObject>(
      m, "dtype",
      "An element type: one of weft.f64, f32, f16, bf16, i32, i64, u32, u64, bool, f8e4m3, f8e5m2, i8, u8.")
      .def_prop_ro(
          "name", [](const DTypeObject& d) { return name(d.dtype); }, "Its name, as in \"bf16\".")
      .def_prop_ro(
          "itemsize", [](const DTypeObject& d) { return byte_size(d.dtype); }, "Bytes of an element.")
      .def_prop_ro(
          "is_float", [](const DTypeObject& d) { return is_float(d.dtype); }, "Is it a float?")
      .def("__repr__", [](const DTypeObject& d) { return fmt::format("weft.{}", name(d.dtype)); })
      .def("__reduce__",
           [](const DTypeObject& d) {
             return nb::make_tuple(nb::module_::import_("weft.pickling").attr("dtype"),
                                   nb::make_tuple(name(d.dtype)));
           })
      .def(
          "__eq__",
          [](const DTypeObject& d, nb::handle other) {
            if (const DTypeObject* o = nullptr; nb::try_cast(other, o, false) && o)
              return o->dtype == d.dtype;
            return nb::isinstance<nb::str>(other) && dtype_called(nb::cast<std::string>(other)) == d.dtype;
          },
          nb::arg("other").none(), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const DTypeObject& d) { return nb::hash(nb::str(name(d.dtype))); });
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    dtype_objects[static_cast<size_t>(i)] = nb::cast(DTypeObject{dtype}).release().ptr();
    // Where annotations of Python's bool are read, as in the stubs, weft.bool must not be in the way; the
    // package adds it.
    m.attr(dtype == DType::boolean ? "boolean" : name(dtype)) =
        nb::borrow(dtype_objects[static_cast<size_t>(i)]);
  }
  m.def(
      "dtype_named", [](nb::handle name) { return nb::steal(dtype_object(dtype_from(name.ptr()))); },
      nb::arg("name"), "The dtype of this name: \"f32\", \"float32\", or a dtype of NumPy's or PyTorch's.");
}

int64_t integer_from(PyObject* o, const char* what) {
  if (PyLong_Check(o) || PyIndex_Check(o)) {
    const nb::object index = nb::steal(PyNumber_Index(o));
    int over = 0;
    const int64_t value = index.is_valid() ? PyLong_AsLongLongAndOverflow(index.ptr(), &over) : -1;
    if (PyErr_Occurred()) throw nb::python_error();
    if (over) throw Error(invalid("{} is beyond what 64 bits hold", what));
    return value;
  }
  raise_type_error(fmt::format("{} must be an int, got {}", what, Py_TYPE(o)->tp_name));
}

Dim dim_from(PyObject* o, const char* what) {
  if (const Dim* d = nullptr; !PyLong_Check(o) && nb::try_cast(nb::handle(o), d, false) && d) return *d;
  return Dim(integer_from(o, what));
}

Shape dims_from(PyObject* o, const char* what) {
  if (!PyTuple_Check(o) && !PyList_Check(o)) {
    if (!PySequence_Check(o) || PyUnicode_Check(o) || is_tensor(o)) return {dim_from(o, what)};
    const nb::object list = nb::steal(PySequence_Tuple(o));
    if (!list.is_valid()) throw nb::python_error();
    return dims_from(list.ptr(), what);
  }
  Shape dims;
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  for (Py_ssize_t i = 0; i < n; ++i) dims.push_back(dim_from(PySequence_Fast_GET_ITEM(o, i), what));
  return dims;
}

PyObject* shape_object(std::span<const Dim> shape) {
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(shape.size()));
  if (!tuple) throw nb::python_error();
  for (size_t i = 0; i < shape.size(); ++i)
    PyTuple_SET_ITEM(
        tuple, static_cast<Py_ssize_t>(i),
        shape[i].is_const() ? PyLong_FromLongLong(shape[i].value()) : nb::cast(shape[i]).release().ptr());
  return tuple;
}

bool is_number(PyObject* o) {
  if (PyFloat_Check(o) || PyLong_Check(o)) return true;
  if (is_tensor(o) || PyUnicode_Check(o)) return false;
  const std::string_view type = Py_TYPE(o)->tp_name;
  if (type == "numpy.datetime64" || type == "numpy.timedelta64") return false;  // though they say they are
  const auto* methods = Py_TYPE(o)->tp_as_number;
  const auto* sequence = Py_TYPE(o)->tp_as_sequence;
  return methods && (methods->nb_index || methods->nb_float) && !(sequence && sequence->sq_length);
}

bool is_bool(PyObject* o) {
  return PyBool_Check(o) || std::string_view(Py_TYPE(o)->tp_name).starts_with("numpy.bool");
}

// i64 and u64 hold integers that a double does not.
static Tensor large_integer(PyObject* o, DType dtype) {
  const nb::object index = nb::steal(PyNumber_Index(o));
  if (!index.is_valid()) throw nb::python_error();
  if (dtype == DType::i64) {
    const int64_t value = integer_from(index.ptr(), "a number beside i64");
    return Tensor::of(std::span(&value, 1), {}, dtype);
  }
  const uint64_t value = PyLong_AsUnsignedLongLong(index.ptr());
  if (PyErr_Occurred()) {
    PyErr_Clear();
    throw Error(invalid("u64 can't hold {}", nb::str(index).c_str()));
  }
  return Tensor::of(std::span(&value, 1), {}, dtype);
}

std::optional<Tensor> operand_from(PyObject* o, const Tensor& beside) {
  if (is_tensor(o)) return tensor_in(o);
  if (!is_number(o)) return {};
  const BesideTensor there(beside);
  if (const Dim* d = nullptr;
      !PyLong_Check(o) && !PyFloat_Check(o) && nb::try_cast(nb::handle(o), d, false) && d)
    return full(1, {}, beside.dtype(), *d);
  const DType dtype = beside.dtype();
  const double value = PyFloat_AsDouble(o);
  if (value == -1 && PyErr_Occurred()) throw nb::python_error();
  if ((dtype == DType::i64 || dtype == DType::u64) && !PyFloat_Check(o) && std::abs(value) >= 0x1p53)
    return large_integer(o, dtype);
  if (!may_stand_for(dtype, value)) throw Error(cannot_hold("a number beside a tensor", dtype, value));
  return full(value, {}, dtype);
}

}  // namespace weft::python
