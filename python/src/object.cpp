#include "python/src/object.h"

#include "eager/tensor_impl.h"

namespace weft::python {

PyTypeObject* tensor_type = nullptr;

PyObject* to_object(Tensor tensor) {
  if (!tensor) return nb::none().release().ptr();
  nb::object o = nb::inst_alloc(nb::handle(reinterpret_cast<PyObject*>(tensor_type)));
  new (nb::inst_ptr<Tensor>(o)) Tensor(std::move(tensor));
  nb::inst_mark_ready(o);
  return o.release().ptr();
}

PyObject* to_tuple(std::span<Tensor> tensors) {
  nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(tensors.size())));
  if (!tuple.is_valid()) throw nb::python_error();
  for (size_t i = 0; i < tensors.size(); ++i)
    PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), to_object(std::move(tensors[i])));
  return tuple.release().ptr();
}

bool is_quick(const Tensor& tensor) {
  constexpr int64_t kFew = 1024;
  const eager::TensorImpl& impl = *tensor.impl();
  if (!impl.device || impl.device->ordered()) return false;
  int64_t elements = 1;
  for (int i = 0; i < impl.rank; ++i) {
    if (impl.dims[i] > kFew) return false;
    elements *= impl.dims[i];
    if (elements > kFew) return false;
  }
  return true;
}

}  // namespace weft::python
