#pragma once
#include "python/src/object.h"

// Tensors that Python sets as fields of modules.
namespace weft::python {

/// Sets a field that has elements: `model.weight = tensor`. The new tensor has the shape and dtype of the old
/// one. A parameter stays one: it requires a gradient if the old one did; a tensor that is a parameter
/// already becomes the same one, which ties the two. `what` names the field in errors.
///
/// Errors   weft.InvalidArgument for another shape or dtype, for a tensor that ops made and gradients go
///          back through, and for a field without elements.
void set_field(Tensor& field, const Tensor& value, bool trained, const std::string& what);

/// A field has another tensor from now on: functions of weft.compile() that read `before` are compiled again.
void field_left(const Tensor& before);

}  // namespace weft::python
