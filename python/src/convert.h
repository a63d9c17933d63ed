#pragma once
#include <optional>

#include "python/src/object.h"

// What Python programs write where Weft wants a dtype, dimensions, or a tensor beside another.
namespace weft::python {

/// A dtype: weft.f32, "f32", "float32", or a dtype of NumPy's or PyTorch's; float, int and bool are f32, i64
/// and bool.
///
/// Errors   TypeError for what names no dtype; it lists those there are.
DType dtype_from(PyObject* o);
/// weft.f32 for DType::f32: a new reference to the one object of that dtype.
PyObject* dtype_object(DType dtype);
/// Adds weft.dtype and its thirteen values to the module.
void bind_dtypes(nb::module_& m);

/// Raises TypeError.
[[noreturn]] void raise_type_error(const std::string& message);

/// An integer, also one of NumPy's. `what` is named in the TypeError.
int64_t integer_from(PyObject* o, const char* what);
/// A dimension: an integer, or a weft.Dim.
Dim dim_from(PyObject* o, const char* what);
/// A list or tuple of dimensions; one integer is a list of one.
Shape dims_from(PyObject* o, const char* what);
/// (2, 3), with a weft.Dim for what is a symbol.
PyObject* shape_object(std::span<const Dim> shape);

/// A number of Python's or NumPy's: bool, int, float.
bool is_number(PyObject* o);
/// A bool of Python's or NumPy's.
bool is_bool(PyObject* o);
/// The tensor, or the number or weft.Dim as a tensor of rank 0 and the dtype of `beside`; nothing where it is
/// neither.
///
/// Errors   weft.InvalidArgument where the dtype does not hold the number.
std::optional<Tensor> operand_from(PyObject* o, const Tensor& beside);

}  // namespace weft::python
