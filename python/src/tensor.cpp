#include <nanobind/stl/string.h>

#include "eager/apply.h"
#include "eager/tensor_impl.h"
#include "python/src/convert.h"
#include "python/src/dlpack.h"
#include "python/src/elements.h"
#include "python/src/index.h"
#include "python/src/module.h"
#include "python/src/operators.h"
#include "weft/ops.h"

// weft.Tensor. Operators, buffers and indices are in files of their own; methods that are ops come from their
// definitions (ops.cpp).
namespace weft::python {
namespace {

using namespace nb::literals;

nb::object object_of(Tensor t) { return nb::steal(to_object(std::move(t))); }

// A dtype, or the name of a backend.
nb::object moved(const Tensor& t, nb::handle where) {
  if (nb::isinstance<nb::str>(where)) {
    const auto name = nb::cast<std::string>(where);
    if (!dtype_from_name(name)) {
      Tensor there;
      {
        const Unlocked unlocked;
        there = t.to(name);
      }
      return object_of(std::move(there));
    }
  }
  const DType dtype = dtype_from(where.ptr());
  if (dtype == t.dtype()) return object_of(t);
  Tensor made;
  {
    const Unlocked unlocked;
    made = cast(t, dtype);
  }
  return object_of(std::move(made));
}

// bool[...] -> bool[]: are all elements true, or is one of them? "One is" is "not all are false", which also
// holds where there is no element.
Tensor folded(const Tensor& t, bool all) {
  const Unlocked unlocked(is_quick(t));
  const Tensor on = t.dtype() == DType::boolean ? t : cast(t, DType::boolean);
  const Tensor every = cast(min(cast(all ? on : logical_not(on), DType::i32)), DType::boolean);
  return all ? every : logical_not(every);
}
bool contains(const Tensor& t, nb::handle value) {
  const auto other = operand_from(value.ptr(), t);
  if (!other) return false;
  const Tensor any = folded(equal(t, *other), false);
  return nb::cast<bool>(item_of(any));
}

// x.reshape(2, 3) and x.reshape((2, 3)).
nb::object reshaped(const Tensor& t, const nb::args& sizes) {
  const bool listed = sizes.size() == 1 && PySequence_Check(nb::handle(sizes[0]).ptr());
  return object_of(reshape(t, dims_from(listed ? nb::handle(sizes[0]).ptr() : sizes.ptr(), "shape")));
}
nb::object permuted(const Tensor& t, const nb::args& axes) {
  const bool listed = axes.size() == 1 && PySequence_Check(nb::handle(axes[0]).ptr());
  return object_of(permute(t, dims_from(listed ? nb::handle(axes[0]).ptr() : axes.ptr(), "axes")));
}

nb::object capsule_of(const Tensor& t, nb::handle, nb::handle max_version, nb::handle device,
                      nb::handle copy) {
  bool versioned = false;
  if (!max_version.is_none()) versioned = nb::cast<int>(max_version[0]) >= 1;
  if (!device.is_none() && !nb::object(dlpack_device(t)).equal(device)) {
    PyErr_Format(PyExc_BufferError,
                 "__dlpack__: the tensor is on device %R, not on %R; use to(backend) first",
                 dlpack_device(t).ptr(), device.ptr());
    throw nb::python_error();
  }
  if (copy.is_none() || !nb::cast<bool>(copy)) return to_capsule(t, versioned);
  Tensor own;
  {
    const Unlocked unlocked;
    own = eager::copy_of(t);
  }
  return to_capsule(own, versioned);
}

// NumPy's array of the memory itself, or of a copy where a device's memory is not the host's.
nb::object numpy_of(const Tensor& t, bool force) {
  const nb::object numpy = nb::module_::import_("numpy");
  Tensor x = force ? t.detach() : t;
  if (force && !letter_of(x.dtype())) x = cast(x, DType::f32);
  const char* const letter = letter_of(x.dtype());
  if (letter && !x.requires_grad() && !x.impl()->traced && !eager::device_of(*x.impl()).host_memory()) {
    std::vector<std::byte> bytes;
    {
      const Unlocked unlocked;
      bytes = x.to_bytes();
    }
    const nb::object copy = nb::steal(PyByteArray_FromStringAndSize(
        reinterpret_cast<const char*>(bytes.data()), static_cast<Py_ssize_t>(bytes.size())));
    return numpy.attr("ndarray")(nb::steal(shape_object(x.shape())), letter, copy);
  }
  const nb::object view = nb::steal(PyMemoryView_FromObject(object_of(std::move(x)).ptr()));
  if (!view.is_valid()) throw nb::python_error();
  return numpy.attr("asarray")(view);
}
nb::object array_of(nb::handle self, nb::handle dtype, nb::handle copy) {
  const nb::object numpy = nb::module_::import_("numpy");
  nb::object a = nb::borrow(self).attr("numpy")();
  if (!dtype.is_none()) a = a.attr("astype")(dtype, "copy"_a = false);
  if (!copy.is_none() && nb::cast<bool>(copy)) a = a.attr("copy")();
  return a;
}

nb::tuple pickled(const Tensor& t) {
  std::vector<std::byte> bytes;
  {
    const Unlocked unlocked;
    bytes = t.to_bytes();
  }
  const nb::object restore = nb::module_::import_("weft.pickling").attr("tensor");
  return nb::make_tuple(
      restore, nb::make_tuple(nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
                              nb::steal(shape_object(t.shape())), name(t.dtype()), t.requires_grad()));
}

std::string printed(const Tensor& t) {
  const Unlocked unlocked;
  return text(t);
}

void backward_of(const Tensor& t, nb::handle gradient, bool create_graph, bool keep) {
  Tensor seed;
  if (!gradient.is_none()) {
    auto given = operand_from(gradient.ptr(), t);
    if (!given) raise_type_error("backward(): the gradient must be a Tensor");
    seed = std::move(*given);
  }
  const Unlocked unlocked;
  t.backward(seed, create_graph, keep);
}

void set_grad(const Tensor& t, nb::handle value) {
  if (value.is_none()) {
    Tensor(t).clear_grad();
    return;
  }
  if (!is_tensor(value.ptr())) raise_type_error("grad must be a Tensor or None");
  const Tensor& g = tensor_in(value.ptr());
  if (!(g.type() == t.type()))
    throw Error(invalid("grad is {}, and the tensor {}; they must be alike", text(g.type()), text(t.type())));
  t.impl()->more().grad = g;
}

// A symbol that may or may not be the number is neither: a program would hold for one of the two only.
bool is_size(Dim a, nb::handle b) {
  if (const Dim* d = nullptr; nb::try_cast(b, d, false) && d) return a == *d;
  if (!PyLong_Check(b.ptr())) return false;
  int over = 0;
  const int64_t n = PyLong_AsLongLongAndOverflow(b.ptr(), &over);
  if (over || n < a.min() || n > a.max()) return false;
  if (!a.is_const())
    throw Error(
        invalid("whether the size {} is {} is not known before the program runs: it is a symbol from {} "
                "to {}. Leave the axis out of dynamic_shapes, or give the symbol narrower bounds",
                a.text(), n, a.min(), a.max()));
  return true;
}

// range(x.shape[0]), and whatever else wants the size itself.
nb::object no_number(Dim d) {
  raise_type_error(
      fmt::format("the size {} is a symbol from {} to {}, and no int before the program runs: leave the axis "
                  "out of dynamic_shapes, or compute with the size by ops, as in x * x.shape[0]",
                  d.text(), d.min(), d.max()));
}

// Only what makes tensors calls nanobind's own: an object without a tensor in it never is.
PyObject* made_by_class(PyTypeObject* type, PyObject*, PyObject*) {
  PyErr_Format(
      PyExc_TypeError,
      "%s can't be made by its class: weft.tensor(data) makes a tensor of numbers, lists and arrays, "
      "weft.from_numpy(array) and weft.from_dlpack(x) one on memory of others, weft.zeros(shape) and "
      "weft.ones(shape) one of a shape",
      type->tp_name);
  return nullptr;
}

std::vector<PyType_Slot> all_slots() {
  std::vector<PyType_Slot> all = {{Py_tp_new, reinterpret_cast<void*>(made_by_class)}};
  for (const PyType_Slot* list : {operator_slots(), index_slots(), buffer_slots()})
    for (; list->slot; ++list) all.push_back(*list);
  all.push_back({0, nullptr});
  return all;
}

void add_values(nb::class_<Tensor>& c) {
  c.def_prop_ro(
       "dtype", [](const Tensor& t) { return nb::steal(dtype_object(t.dtype())); },
       nb::sig("def dtype(self) -> dtype"), "The type of its elements.")
      .def_prop_ro(
          "shape", [](const Tensor& t) { return nb::steal(shape_object(t.shape())); },
          nb::sig("def shape(self) -> tuple[int, ...]"),
          "Its sizes; inside a trace, a weft.Dim where one is a symbol.")
      .def_prop_ro("ndim", &Tensor::rank, "How many axes it has.")
      .def_prop_ro(
          "size", [](const Tensor& t) { return element_count(t.sizes()); }, "How many elements it has.")
      .def_prop_ro(
          "nbytes",
          [](const Tensor& t) {
            return element_count(t.sizes()) * static_cast<int64_t>(byte_size(t.dtype()));
          },
          "Bytes of its elements.")
      .def_prop_ro("backend", &Tensor::backend, "The name of the backend that it is on.")
      .def_prop_ro(
          "T", [](const Tensor& t) { return object_of(permute(t)); }, nb::sig("def T(self) -> Tensor"),
          "Its axes in reverse.")
      .def_prop_rw(
          "name", [](const Tensor& t) { return t.name(); },
          [](Tensor& t, std::string name) { t.named(std::move(name)); },
          "A name for messages, states and checkpoints.")
      .def(
          "numel", [](const Tensor& t) { return element_count(t.sizes()); }, "How many elements it has.")
      .def("item", item_of, "Its one element as a bool, int or float.")
      .def("tolist", nested_list, "Its elements as nested lists.")
      .def(
          "any", [](const Tensor& t) { return object_of(folded(t, false)); },
          nb::sig("def any(self) -> Tensor"), "Is an element true, or not 0?")
      .def(
          "all", [](const Tensor& t) { return object_of(folded(t, true)); },
          nb::sig("def all(self) -> Tensor"), "Are all elements true, or not 0?");
}

void add_protocols(nb::class_<Tensor>& c) {
  c.def("__len__", length_of)
      .def("__contains__", contains, nb::arg("value").none())
      .def(
          "__iter__", [](nb::handle self) { return rows_of(self, false); },
          nb::sig("def __iter__(self) -> Iterator[Tensor]"))
      .def(
          "__reversed__", [](nb::handle self) { return rows_of(self, true); },
          nb::sig("def __reversed__(self) -> Iterator[Tensor]"))
      .def("__repr__", printed)
      .def("__str__", printed)
      .def("_repr_html_",
           [](nb::handle self) { return nb::module_::import_("weft.display").attr("tensor_html")(self); })
      .def("__format__",
           [](nb::handle self, const std::string& how) {
             if (how.empty()) return nb::object(nb::str(self));
             return nb::steal(
                 PyObject_Format(item_of(tensor_in(self.ptr())).ptr(), nb::str(how.c_str()).ptr()));
           })
      .def("__reduce__", pickled)
      .def("__copy__", [](const Tensor& t) { return object_of(t); })
      .def("__deepcopy__", [](const Tensor& t, nb::handle) {
        Tensor own;
        {
          const Unlocked unlocked;
          own = eager::copy_of(t.detach());
        }
        if (t.requires_grad()) own.requires_grad(true);
        return object_of(std::move(own));
      });
}

void add_exchange(nb::class_<Tensor>& c) {
  c.def("numpy", numpy_of, "force"_a = false,
        nb::sig("def numpy(self, force: bool = False) -> numpy.ndarray"),
        "A NumPy array on the same memory; where a device's memory is not the host's, a copy.\n\n"
        "`force` takes what can't be shared as well: a tensor that requires a gradient is detached, bf16 "
        "becomes f32.")
      .def("__array__", array_of, "dtype"_a = nb::none(), "copy"_a = nb::none())
      .def("__dlpack__", capsule_of, nb::kw_only(), "stream"_a = nb::none(), "max_version"_a = nb::none(),
           "dl_device"_a = nb::none(), "copy"_a = nb::none(),
           "Exports the memory to another library; no element is copied, and the work on it is done.")
      .def("__dlpack_device__", dlpack_device, "The device in DLPack's numbers.")
      .def("to", moved, "where"_a, nb::sig("def to(self, where: DTypeLike | str) -> Tensor"),
           "The tensor as another dtype, or a copy on another backend.")
      .def(
          "clone",
          [](const Tensor& t) {
            Tensor own;
            {
              const Unlocked unlocked;
              const BesideTensor there(t);
              own = t.requires_grad() ? mul(t, full(1, {}, t.dtype())) : eager::copy_of(t);
            }
            return object_of(std::move(own));
          },
          nb::sig("def clone(self) -> Tensor"), "The same elements in memory of its own.")
      .def("reshape", reshaped, nb::sig("def reshape(self, *shape: int | Sequence[int]) -> Tensor"),
           "The same elements, in row-major order, under another shape; one size may be -1.")
      .def("permute", permuted, nb::sig("def permute(self, *axes: int | Sequence[int]) -> Tensor"),
           "The axes in another order.");
  c.attr("__array_ufunc__") = nb::none();  // NumPy leaves operators with a tensor to it
}

void add_gradients(nb::class_<Tensor>& c) {
  c.def_prop_rw(
       "requires_grad", [](const Tensor& t) { return t.requires_grad(); },
       [](Tensor& t, bool on) { t.requires_grad(on); }, "Does backward() leave a gradient here?")
      .def(
          "requires_grad_",
          [](nb::handle self, bool on) {
            tensor_in(self.ptr()).requires_grad(on);
            return nb::borrow(self);
          },
          "on"_a = true, nb::sig("def requires_grad_(self, on: bool = True) -> Tensor"),
          "Sets requires_grad, and gives the tensor back.")
      .def_prop_rw(
          "grad", [](const Tensor& t) { return object_of(t.grad()); }, set_grad,
          nb::for_setter(nb::arg("value").none()), nb::for_getter(nb::sig("def grad(self) -> Tensor | None")),
          nb::for_setter(nb::sig("def grad(self, value: Tensor | None, /) -> None")),
          "The gradient that backward() accumulated; None where there is none.")
      .def_prop_ro(
          "is_leaf",
          [](const Tensor& t) { return !(t.requires_grad() && t.impl()->extra && t.impl()->extra->node); },
          "Was it made by no op that a gradient goes back through?")
      .def("backward", backward_of, "gradient"_a = nb::none(), "create_graph"_a = false,
           "retain_graph"_a = false,
           nb::sig("def backward(self, gradient: Tensor | None = None, create_graph: bool = False, "
                   "retain_graph: bool = False) -> None"),
           "Adds the derivative of this tensor to the gradient of every leaf that requires one; if it "
           "raises, to none.\n\n"
           "This tensor must have one element, unless `gradient` gives its own. What was saved is freed on "
           "the way, unless the history is\n"
           "retained; with `create_graph` it is, and gradients can be differentiated.")
      .def(
          "detach", [](const Tensor& t) { return object_of(t.detach()); },
          nb::sig("def detach(self) -> Tensor"), "The same elements, without history.");
}

}  // namespace

void bind_tensor(nb::module_& m) {
  static const std::vector<PyType_Slot> slots = all_slots();
  nb::class_<Tensor> c(m, "Tensor", nb::type_slots(slots.data()), nb::is_weak_referenceable(), nb::pooled(),
                       "A typed array on a device, with gradients. weft.tensor() makes one.\n\n"
                       "Ops run immediately, each by the best kernel that accepts the call. Inside a trace a "
                       "tensor stands for a value of the\n"
                       "graph, and reading its elements is an error.");
  tensor_type = reinterpret_cast<PyTypeObject*>(c.ptr());
  document_index();
  add_values(c);
  add_protocols(c);
  add_exchange(c);
  add_gradients(c);
  m.def("_tensor_from_bytes",
        [](const nb::bytes& bytes, nb::handle shape, const std::string& dtype, bool requires_grad) {
          IntList sizes;
          for (const Dim d : dims_from(shape.ptr(), "shape")) sizes.push_back(d.value());
          Tensor t = Tensor::from_bytes({static_cast<const std::byte*>(bytes.data()), bytes.size()}, sizes,
                                        dtype_from(nb::str(dtype.c_str()).ptr()));
          if (requires_grad) t.requires_grad(true);
          return object_of(std::move(t));
        });
  nb::class_<Dim>(m, "Dim", "A dimension that is a symbol, or an expression of symbols.")
      .def(
          "__init__",
          [](Dim* d, const std::string& name, int64_t min, int64_t max) {
            new (d) Dim(Dim::symbol(name, min, max));
          },
          "name"_a, "min"_a = 1, "max"_a = 65536, "As weft.Dim.symbol().")
      .def("__index__", no_number, nb::sig("def __index__(self) -> int"))
      .def("__float__", no_number, nb::sig("def __float__(self) -> float"))
      .def_static(
          "symbol",
          [](const std::string& name, int64_t min, int64_t max) { return Dim::symbol(name, min, max); },
          "name"_a, "min"_a = 1, "max"_a = 65536, "A named unknown between two bounds.")
      .def_prop_ro("min", &Dim::min, "The least value it may have.")
      .def_prop_ro("max", &Dim::max, "The largest.")
      .def("__repr__", &Dim::text)
      .def("__eq__", is_size, nb::arg("other").none())
      .def("__hash__", [](Dim d) { return d.bits(); })
      .def("__add__", [](Dim a, nb::handle b) { return a + dim_from(b.ptr(), "a dimension"); })
      .def("__radd__", [](Dim a, nb::handle b) { return dim_from(b.ptr(), "a dimension") + a; })
      .def("__sub__", [](Dim a, nb::handle b) { return a - dim_from(b.ptr(), "a dimension"); })
      .def("__rsub__", [](Dim a, nb::handle b) { return dim_from(b.ptr(), "a dimension") - a; })
      .def("__mul__", [](Dim a, nb::handle b) { return a * dim_from(b.ptr(), "a dimension"); })
      .def("__rmul__", [](Dim a, nb::handle b) { return dim_from(b.ptr(), "a dimension") * a; })
      .def("__floordiv__", [](Dim a, int64_t b) { return floor_div(a, b); });
}

}  // namespace weft::python
