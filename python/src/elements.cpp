#include "python/src/elements.h"

#include "base/element.h"
#include "eager/tensor_impl.h"
#include "python/src/convert.h"
#include "python/src/dlpack.h"
#include "weft/ops.h"

namespace weft::python {
namespace {

PyObject* element(DType dtype, const std::byte* bytes, size_t i) {
  if (dtype == DType::boolean)
    return Py_NewRef(load_element<double>(dtype, bytes, i) != 0 ? Py_True : Py_False);
  if (dtype == DType::u64) return PyLong_FromUnsignedLongLong(load_element<uint64_t>(dtype, bytes, i));
  if (is_float(dtype)) return PyFloat_FromDouble(load_element<double>(dtype, bytes, i));
  return PyLong_FromLongLong(load_element<int64_t>(dtype, bytes, i));
}

std::vector<std::byte> bytes_of(const Tensor& t) {
  const Unlocked unlocked;
  return t.to_bytes();
}

struct Elements {
  DType dtype;
  const std::byte* bytes;
  IntList sizes;
};
nb::object nested(const Elements& e, size_t axis, size_t& next) {
  if (axis == e.sizes.size()) return nb::steal(element(e.dtype, e.bytes, next++));
  nb::object list = nb::steal(PyList_New(e.sizes[axis]));
  if (!list.is_valid()) throw nb::python_error();
  for (int64_t i = 0; i < e.sizes[axis]; ++i)
    PyList_SET_ITEM(list.ptr(), i, nested(e, axis + 1, next).release().ptr());
  return list;
}

/// The numbers of nested lists, in order.
class Numbers {
 public:
  explicit Numbers(nb::handle data) { read(data, 0); }

  Tensor tensor(std::optional<DType> wanted, const std::string& backend) const {
    const DType dtype = wanted         ? *wanted
                        : any_float_   ? DType::f32
                        : all_.empty() ? DType::f32
                        : all_bool_    ? DType::boolean
                                       : DType::i64;
    std::vector<std::byte> bytes(all_.size() * byte_size(dtype));
    for (size_t i = 0; i < all_.size(); ++i) store(dtype, bytes.data(), i, all_[i].ptr());
    return Tensor::from_bytes(bytes, shape_, dtype, backend);
  }

 private:
  void read(nb::handle o, size_t axis) {
    if (PyList_Check(o.ptr()) || PyTuple_Check(o.ptr())) {
      const Py_ssize_t n = PySequence_Fast_GET_SIZE(o.ptr());
      if (axis >= eager::kMaxRank)
        throw Error(invalid("tensor: lists are nested deeper than {} levels, the most axes of a tensor",
                            eager::kMaxRank));
      enter(axis, n);
      for (Py_ssize_t i = 0; i < n; ++i) {
        if (PySequence_Fast_GET_SIZE(o.ptr()) != n)  // an element's own code may have changed it
          throw Error(invalid("tensor: a list at depth {} changed its length while it was read", axis));
        read(nb::borrow(PySequence_Fast_GET_ITEM(o.ptr(), i)), axis + 1);
      }
      return;
    }
    if (!PyFloat_Check(o.ptr()) && !PyLong_Check(o.ptr())) refuse_no_numbers(o, "tensor");
    if (!is_number(o.ptr())) {
      // Tensors and arrays inside of lists.
      if (nb::hasattr(o, "tolist")) return read(o.attr("tolist")(), axis);
      if (PySequence_Check(o.ptr()) && !PyUnicode_Check(o.ptr()) && !PyBytes_Check(o.ptr()))
        return read(nb::tuple(o), axis);
      raise_type_error(fmt::format("tensor: an element must be a number, got {}", Py_TYPE(o.ptr())->tp_name));
    }
    if (depth_ >= 0 && static_cast<size_t>(depth_) != axis) throw_ragged(axis);
    depth_ = static_cast<int>(axis);
    any_float_ = any_float_ || !(PyLong_Check(o.ptr()) || PyIndex_Check(o.ptr()));
    all_bool_ = all_bool_ && PyBool_Check(o.ptr());
    all_.push_back(nb::borrow(o));
  }
  void enter(size_t axis, Py_ssize_t n) {
    if (depth_ >= 0 && axis >= static_cast<size_t>(depth_)) throw_ragged(axis);
    if (axis == shape_.size() && depth_ < 0) {
      shape_.push_back(n);
    } else if (axis >= shape_.size()) {
      throw_ragged(axis);
    } else if (shape_[axis] != n) {
      throw Error(
          invalid("tensor: a list at depth {} has {} elements, and the one before it {}; all must be alike",
                  axis, n, shape_[axis]));
    }
  }
  [[noreturn]] static void throw_ragged(size_t axis) {
    throw Error(invalid(
        "tensor: at depth {} some elements are numbers and others are lists; all must be alike", axis));
  }
  static void store(DType dtype, std::byte* bytes, size_t i, PyObject* o) {
    if (!is_float(dtype) && !PyFloat_Check(o) && dtype != DType::boolean) {
      if (dtype == DType::u64) {
        const nb::object index = nb::steal(PyNumber_Index(o));
        if (!index.is_valid()) throw nb::python_error();
        const uint64_t value = PyLong_AsUnsignedLongLong(index.ptr());
        if (PyErr_Occurred()) {
          PyErr_Clear();
          throw Error(invalid("tensor: u64 can't hold {}", nb::str(index).c_str()));
        }
        return store_element(dtype, bytes, i, value);
      }
      const int64_t value = integer_from(o, "an element");
      if (dtype != DType::i64 && !may_stand_for(dtype, static_cast<double>(value)))
        throw Error(cannot_hold("tensor", dtype, static_cast<double>(value)));
      return store_element(dtype, bytes, i, value);
    }
    const double value = PyFloat_AsDouble(o);
    if (value == -1 && PyErr_Occurred()) throw nb::python_error();
    if (dtype == DType::boolean) return store_element(dtype, bytes, i, static_cast<double>(value != 0));
    if (!may_stand_for(dtype, value)) throw Error(cannot_hold("tensor", dtype, value));
    store_element(dtype, bytes, i, value);
  }

  std::vector<nb::object> all_;
  IntList shape_;
  int depth_ = -1;  // of the numbers
  bool any_float_ = false, all_bool_ = true;
};

Tensor converted(Tensor t, std::optional<DType> dtype) {
  if (!dtype || t.dtype() == *dtype) return t;
  const Unlocked unlocked;
  return cast(t, *dtype);
}

}  // namespace

nb::object item_of(const Tensor& t) {
  const auto bytes = bytes_of(t);
  if (bytes.size() != byte_size(t.dtype()))
    throw Error(invalid("item() wants one element, {} has {}; any(), all() and tolist() take more",
                        text(t.type()), bytes.size() / byte_size(t.dtype())));
  return nb::steal(element(t.dtype(), bytes.data(), 0));
}

nb::object nested_list(const Tensor& t) {
  const auto bytes = bytes_of(t);
  size_t next = 0;
  return nested({t.dtype(), bytes.data(), t.sizes()}, 0, next);
}

Tensor tensor_from(nb::handle data, std::optional<DType> dtype, const std::string& backend) {
  if (is_tensor(data.ptr())) {
    const Tensor& t = tensor_in(data.ptr());
    const Unlocked unlocked;
    const Tensor there = backend.empty() ? t.detach() : t.detach().to(backend);
    return dtype && *dtype != t.dtype() ? cast(there, *dtype) : eager::copy_of(there);
  }
  if (PyObject_CheckBuffer(data.ptr())) return converted(copy_of_buffer(data, backend), dtype);
  if (nb::hasattr(data, "__dlpack__")) {
    const Tensor shared = from_capsule_or_object(data, "");
    Tensor own;
    {
      const Unlocked unlocked;
      own = eager::copy_of(shared);
      if (!backend.empty()) own = own.to(backend);
    }
    return converted(std::move(own), dtype);
  }
  return Numbers(data).tensor(dtype, backend);
}

}  // namespace weft::python
