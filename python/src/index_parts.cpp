#include "python/src/index_parts.h"

#include <algorithm>

#include "python/src/convert.h"
#include "python/src/dlpack.h"
#include "python/src/elements.h"
#include "weft/ops.h"

// An index of Python's, read: which items it has, and whether they fit the tensor's axes.
namespace weft::python {
namespace {

[[noreturn]] void raise_index_error(const std::string& message) {
  PyErr_SetString(PyExc_IndexError, message.c_str());
  throw nb::python_error();
}

bool picks(const Part& p) { return p.kind == Part::Kind::number || p.kind == Part::Kind::list; }

bool is_index_list(PyObject* o) {
  if (PyList_Check(o) || PyTuple_Check(o)) return true;
  if (PyBytes_Check(o)) return false;
  return (PySequence_Check(o) && PyObject_CheckBuffer(o)) || PyObject_HasAttrString(o, "__dlpack__");
}

Tensor index_list_from(PyObject* o) {
  if (is_tensor(o)) return tensor_in(o);
  if (PyList_Check(o) && PyList_GET_SIZE(o) == 0)
    return Tensor::of(std::span<const int64_t>(), std::array<int64_t, 1>{0}, DType::i64);
  // PyTorch's tensors, too, are sequences, but of tensors.
  if (!PyList_Check(o) && !PyTuple_Check(o) && !PyObject_CheckBuffer(o)) return from_capsule_or_object(o, "");
  return tensor_from(o, {}, "");
}

// How many axes an item takes: masks take as many as they have.
size_t axes_of(PyObject* o) {
  if (o == Py_None || o == Py_Ellipsis) return 0;
  if (is_tensor(o) && tensor_in(o).dtype() == DType::boolean) return static_cast<size_t>(tensor_in(o).rank());
  if (!is_tensor(o) && is_index_list(o)) {
    const Tensor t = index_list_from(o);
    return t.dtype() == DType::boolean ? static_cast<size_t>(t.rank()) : 1;
  }
  return 1;
}

}  // namespace

Index::Index(const Tensor& x, PyObject* key) : x_(x), shape_(x.shape()) {
  const bool tuple = PyTuple_Check(key);
  const Py_ssize_t n = tuple ? PyTuple_GET_SIZE(key) : 1;
  const auto item = [&](Py_ssize_t i) { return tuple ? PyTuple_GET_ITEM(key, i) : key; };
  Py_ssize_t dots = -1;
  size_t axes = 0, before = 0;  // `before`: how many parts stand in front of '...'
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (item(i) == Py_Ellipsis && dots >= 0) raise_index_error("an index may have one '...' only");
    if (item(i) == Py_Ellipsis) dots = i;
    axes += axes_of(item(i));
  }
  if (axes > shape_.size())
    raise_index_error(fmt::format("too many indices: {} has {} axes, and {} are indexed", text(x.type()),
                                  shape_.size(), axes));
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (i == dots) {
      before = parts.size();
      for (size_t k = axes; k < shape_.size(); ++k) add_all();
    } else {
      add(item(i));
    }
  }
  while (next_ < shape_.size()) add_all();
  const auto at = parts.begin() + static_cast<std::ptrdiff_t>(before);
  parted = std::any_of(parts.begin(), at, picks) && std::any_of(at, parts.end(), picks);
}

void Index::check_tensors() const {
  for (const Part& p : parts)
    if (p.given && !p.given.impl()->traced) check_numbers(p.given, p.axis);
}

void Index::add_all() {
  parts.push_back({.kind = Part::Kind::range});
  ++next_;
}

void Index::add(PyObject* o) {
  if (o == Py_None) {
    parts.push_back({.kind = Part::Kind::fresh});
  } else if (PySlice_Check(o)) {
    parts.push_back({.kind = Part::Kind::range, .slice = nb::borrow(o)});
    ++next_;
  } else if (PyBool_Check(o)) {
    raise_index_error("True and False are no indices; a mask is a tensor, an array or a list of them");
  } else if (is_tensor(o) || is_index_list(o)) {
    add_list(o);
  } else if (PyIndex_Check(o)) {
    add_number(integer_from(o, "an index"));
  } else {
    raise_index_error(fmt::format(
        "{} is no index; there are int, slice, None, ..., and tensors, arrays and lists of int and bool",
        Py_TYPE(o)->tp_name));
  }
}

void Index::add_number(int64_t i) {
  const Dim n = shape_[next_];
  const int64_t most = n.is_const() ? n.value() : n.min();
  if (n.is_const() ? i < -n.value() || i >= n.value() : i >= most || i < -most)
    raise_index_error(fmt::format("index {} is outside of axis {} of {}: it must be in [-{}, {})", i, next_,
                                  text(x_.type()), most, most));
  parts.push_back({.kind = Part::Kind::number, .number = i});
  ++next_;
}

void Index::add_list(PyObject* o) {
  Tensor list = index_list_from(o);
  if (list.dtype() == DType::boolean) return add_mask(list);
  if (is_float(list.dtype()))
    raise_index_error(fmt::format("an index must be integers or bools, got {}", text(list.type())));
  if (list.rank() == 0 && !is_tensor(o)) return add_number(nb::cast<int64_t>(item_of(list)));
  if (!is_tensor(o)) check_numbers(list, next_);
  const Tensor given = is_tensor(o) ? list : Tensor();
  list = list.dtype() == DType::i64 ? list : cast(list, DType::i64);
  // Those below zero count from the end.
  const Tensor n = full(1, {}, DType::i64, shape_[next_]), zero = full(0, {}, DType::i64);
  parts.push_back({.kind = Part::Kind::list,
                   .list = where(less(list, zero), weft::add(list, n), list),
                   .checked = !is_tensor(o) && shape_[next_].is_const(),
                   .given = given,
                   .axis = next_});
  lists = true;
  ++next_;
}

// Numbers that the host has are checked here, in words; those of a tensor by the kernel.
void Index::check_numbers(const Tensor& list, size_t axis) const {
  const Dim n = shape_[axis];
  if (!n.is_const()) return;
  for (const int64_t i : list.to_vector<int64_t>())
    if (i < -n.value() || i >= n.value())
      raise_index_error(fmt::format("index {} is outside of axis {} of {}: it must be in [-{}, {})", i, axis,
                                    text(x_.type()), n.value(), n.value()));
}

void Index::add_mask(const Tensor& mask) {
  const IntList sizes = mask.sizes();
  for (size_t d = 0; d < sizes.size(); ++d)
    if (!(shape_[next_ + d] == Dim(sizes[d])))
      raise_index_error(fmt::format("a mask {} does not fit {}: axis {} has {}", text(mask.type()),
                                    text(x_.type()), next_ + d, shape_[next_ + d].text()));
  if (sizes.empty()) raise_index_error("a mask of rank 0 is no index; use weft.where()");
  const auto on = mask.to_vector<bool>();
  std::vector<std::vector<int64_t>> where_on(sizes.size());
  for (size_t i = 0; i < on.size(); ++i) {
    if (!on[i]) continue;
    size_t rest = i;
    for (size_t d = sizes.size(); d-- > 0;) {
      where_on[d].push_back(static_cast<int64_t>(rest % static_cast<size_t>(sizes[d])));
      rest /= static_cast<size_t>(sizes[d]);
    }
  }
  for (const auto& numbers : where_on) {
    const int64_t n[] = {static_cast<int64_t>(numbers.size())};
    parts.push_back({.kind = Part::Kind::list,
                     .list = Tensor::of(std::span<const int64_t>(numbers), n, DType::i64),
                     .checked = true});
    ++next_;
  }
  lists = true;
}

}  // namespace weft::python
