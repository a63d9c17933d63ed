#pragma once
#include "python/src/object.h"

// Elements as Python's numbers, and the other way round.
namespace weft::python {

/// One element as a bool, int or float.
nb::object item_of(const Tensor& tensor);
/// The elements as nested lists; a number for rank 0.
nb::object nested_list(const Tensor& tensor);

/// A tensor of its own from numbers, nested lists, arrays or tensors. Without a dtype, arrays keep theirs,
/// Python's floats are f32, ints i64 and bools bool.
///
/// Errors   weft.InvalidArgument where lists differ in length, and for a number that the dtype does not hold;
/// TypeError for what is no
///          number.
Tensor tensor_from(nb::handle data, std::optional<DType> dtype, const std::string& backend);

}  // namespace weft::python
