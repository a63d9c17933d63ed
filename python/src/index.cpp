#include "python/src/index.h"

#include <algorithm>

#include "eager/apply.h"
#include "eager/tensor_impl.h"
#include "eager/trace_state.h"
#include "python/src/convert.h"
#include "python/src/elements.h"
#include "python/src/index_parts.h"
#include "weft/ops.h"

// x[...] as NumPy has it: numbers, ranges, None, ..., lists of numbers and masks, in any mixture. All of it
// is ops, so it is traced and has gradients; but a mask is read, since it says how large the result is.
namespace weft::python {
namespace {

int64_t bound(nb::handle o, int64_t otherwise) {
  return o.is_none() ? otherwise : integer_from(o.ptr(), "a slice's bound");
}

/// What `f` gives, with Python's lock released if x is large.
template <class F>
Tensor run(const Tensor& x, F f) {
  const Unlocked unlocked(is_quick(x));
  return f();
}

/// x[start:stop:step] along one axis.
Tensor sliced(const Tensor& x, int64_t axis, nb::handle s) {
  if (!s.is_valid()) return x;
  const auto* slice_of = reinterpret_cast<PySliceObject*>(s.ptr());
  const int64_t step = bound(slice_of->step, 1);
  if (step == 0) {
    PyErr_SetString(PyExc_ValueError, "a slice's step must not be 0");
    throw nb::python_error();
  }
  if (slice_of->start == Py_None && slice_of->stop == Py_None && step == 1) return x;
  const Dim n = x.dim(axis);
  if (step > 0 && !n.is_const()) {
    const Dim start = slice_of->start == Py_None ? Dim(0) : dim_from(slice_of->start, "a slice's bound");
    const Dim stop = slice_of->stop == Py_None ? n : dim_from(slice_of->stop, "a slice's bound");
    return run(x, [&] { return slice(x, axis, start, stop, step); });
  }
  if (!n.is_const())
    throw Error(fail(Code::unsupported,
                     "x[::{}]: a step below 0 wants an axis whose size is a number, got {}", step, n.text()));
  Py_ssize_t start = 0, stop = 0, by = 0;
  if (PySlice_Unpack(s.ptr(), &start, &stop, &by) != 0) throw nb::python_error();
  const Py_ssize_t count = PySlice_AdjustIndices(n.value(), &start, &stop, by);
  if (by > 0) return run(x, [&] { return slice(x, axis, Dim(start), Dim(std::max(start, stop)), by); });
  std::vector<int64_t> numbers;
  for (Py_ssize_t i = 0; i < count; ++i) numbers.push_back(start + i * by);
  const int64_t sizes[] = {count};
  return run(
      x, [&] { return gather(x, Tensor::of(std::span<const int64_t>(numbers), sizes, DType::i64), axis); });
}

// Numbers, ranges and None: slices, then one reshape. Lists' axes stay whole, and so do those of numbers
// beside lists.
Tensor basic(Tensor x, const Index& index, std::vector<size_t>* list_axes) {
  Shape shape;
  int64_t axis = 0;
  bool reshaped = false;
  for (const Part& p : index.parts) {
    switch (p.kind) {
      case Part::Kind::fresh:
        shape.push_back(1);
        reshaped = true;
        continue;
      case Part::Kind::range:
        x = sliced(x, axis, p.slice);
        shape.push_back(x.dim(axis));
        break;
      case Part::Kind::list:
        list_axes->push_back(shape.size());
        shape.push_back(x.dim(axis));
        break;
      case Part::Kind::number:
        if (index.lists) {
          list_axes->push_back(shape.size());
          shape.push_back(x.dim(axis));
          break;
        }
        const Dim n = x.dim(axis);
        const Dim start = p.number < 0 ? n + Dim(p.number) : Dim(p.number);
        x = run(x, [&] { return slice(x, axis, start, start + Dim(1), 1); });
        reshaped = true;
        break;
    }
    ++axis;
  }
  return reshaped ? run(x, [&] { return reshape(x, shape); }) : x;
}

// One number for each place of the lists: they are broadcast together. The kernel that reads it sees whether
// it is among all elements, not whether each number is within its own axis; a look-up in that axis' numbers
// does.
Tensor merged(const Tensor& x, const Index& index, const std::vector<size_t>& axes) {
  Tensor all;
  size_t k = 0;
  for (const Part& p : index.parts) {
    if (p.kind == Part::Kind::fresh || p.kind == Part::Kind::range) continue;
    const Dim n = x.dim(static_cast<int64_t>(axes[k++]));
    Tensor one = p.list;
    if (axes.size() > 1 && p.kind == Part::Kind::list && !p.checked)
      one = gather(iota(n, DType::i64), one, 0);
    if (p.kind == Part::Kind::number)
      one = full(1, {}, DType::i64, p.number < 0 ? n + Dim(p.number) : Dim(p.number));
    all = all ? add(mul(all, full(1, {}, DType::i64, n)), one) : one;
  }
  return all;
}

// Lists: their axes are brought together and made one, along which their numbers are gathered. In the result
// they stand where they stood; where other axes stood between them, in front.
Tensor advanced(const Tensor& x, const Index& index, const std::vector<size_t>& axes) {
  const Tensor numbers = merged(x, index, axes);
  const bool together = !index.parted && axes.back() - axes.front() + 1 == axes.size();
  if (axes.size() == 1) return gather(x, numbers, static_cast<int64_t>(axes[0]));
  Shape order, shape;
  const size_t at = together ? axes.front() : 0;
  const auto listed = [&](size_t d) { return std::find(axes.begin(), axes.end(), d) != axes.end(); };
  Dim all = 1;
  for (const size_t d : axes) all = all * x.dim(static_cast<int64_t>(d));
  for (size_t d = 0; d < static_cast<size_t>(x.rank()); ++d)
    if (!listed(d)) order.push_back(Dim(d)), shape.push_back(x.dim(static_cast<int64_t>(d)));
  Shape full_order(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(at)),
      full_shape(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(at));
  for (const size_t d : axes) full_order.push_back(Dim(d));
  full_shape.push_back(all);
  for (size_t i = at; i < order.size(); ++i) full_order.push_back(order[i]), full_shape.push_back(shape[i]);
  const Tensor moved = together ? x : permute(x, full_order);
  return gather(reshape(moved, full_shape), numbers, static_cast<int64_t>(at));
}

Tensor picked(const Tensor& x, PyObject* key) {
  const BesideTensor there(x);
  const Index index(x, key);
  std::vector<size_t> axes;
  const Tensor y = basic(x, index, &axes);
  if (axes.empty()) return y;
  try {
    return run(y, [&] { return advanced(y, index, axes); });
  } catch (const Error& e) {
    if (e.status().code() == Code::device) index.check_tensors();
    throw;
  }
}

// ---- x[...] = y
void refuse_recorded(const Tensor& x, const Tensor& value) {
  if (!eager::grad_enabled() || !(x.requires_grad() || value.requires_grad())) return;
  throw Error(fail(Code::unsupported,
                   "x[...] = y on {}: it writes into memory that a gradient may need; use weft.where() or "
                   "weft.scatter(), or do it under "
                   "weft.no_grad()",
                   text(x.type())));
}

// Each element knows its place, so what an index picks of the places is where the new elements go.
void put(const Tensor& x, PyObject* key, const Tensor& value) {
  refuse_recorded(x, value);
  const BesideTensor there(x);
  const Dim size = element_count(x.shape());
  const Tensor places = picked(reshape(iota(size, DType::i64), x.shape()), key);
  const Unlocked unlocked(is_quick(x));
  const Tensor rows = reshape(broadcast(value, places.shape()), {element_count(places.shape())});
  const Tensor at = reshape(places, {element_count(places.shape())});
  const Tensor same = rows.dtype() == x.dtype() ? rows : cast(rows, x.dtype());
  if (x.impl()->traced || eager::active_trace() || x.impl()->irregular) {
    (void)assign(x, reshape(scatter(reshape(x, {size}), at, same), x.shape()));
    return;
  }
  // The memory itself as one row: an update of it is an update of x.
  (void)assign_rows(eager::viewed(x, {size}), at, same);
}

PyObject* get(PyObject* self, PyObject* key) {
  return guarded([&] { return to_object(picked(tensor_in(self), key)); });
}
PyObject* get_number(PyObject* self, Py_ssize_t i) {
  const nb::object key = nb::steal(PyLong_FromSsize_t(i));
  return key.is_valid() ? get(self, key.ptr()) : nullptr;
}
int set(PyObject* self, PyObject* key, PyObject* value) {
  try {
    const Tensor& x = tensor_in(self);
    if (!value) raise_type_error("the elements of a tensor can't be deleted");
    auto given = operand_from(value, x);
    const BesideTensor there(x);
    put(x, key, given ? *given : tensor_from(value, x.dtype(), ""));
    return 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}

}  // namespace

int64_t length_of(const Tensor& t) {
  if (t.rank() == 0) raise_type_error("a tensor of rank 0 has no length");
  const Dim n = t.dim(0);
  if (!n.is_const()) throw Error(invalid("the length {} is symbolic here; shape[0] gives it", n.text()));
  return n.value();
}

// No iterator of Python's over a sequence: that one takes any IndexError for the end.
nb::object rows_of(nb::handle tensor, bool backwards) {
  const nb::module_ builtins = nb::module_::import_("builtins");
  const int64_t n = length_of(tensor_in(tensor.ptr()));
  return builtins.attr("map")(tensor.attr("__getitem__"),
                              backwards ? builtins.attr("range")(n - 1, -1, -1) : builtins.attr("range")(n));
}

// A slot's own documentation is Python's "Return self[key]."; a method beside it, as dict has one, says more.
void document_index() {
  static PyMethodDef method = {
      "__getitem__", get, METH_O | METH_COEXIST,
      "__getitem__($self, key, /)\n--\n\n"
      "x[key], as in NumPy: numbers, slices, None, ..., and tensors, arrays and lists of int or bool, in any "
      "mixture.\n\n"
      "Each number picks along one axis, a slice a part of it; None adds an axis of 1; a mask picks where it "
      "is True. The result is a\n"
      "tensor of its own, and gradients go back through it.\n\n"
      "Errors   IndexError for what is no index, and for numbers outside of their axis."};
  const nb::object descriptor = nb::steal(PyDescr_NewMethod(tensor_type, &method));
  if (!descriptor.is_valid() || PyDict_SetItemString(tensor_type->tp_dict, "__getitem__", descriptor.ptr()))
    throw nb::python_error();
  PyType_Modified(tensor_type);
}

const PyType_Slot* index_slots() {
  static const PyType_Slot slots[] = {
      {Py_mp_subscript, reinterpret_cast<void*>(get)},
      {Py_mp_ass_subscript, reinterpret_cast<void*>(set)},
      {Py_sq_item, reinterpret_cast<void*>(get_number)},
      {0, nullptr},
  };
  return slots;
}

}  // namespace weft::python
