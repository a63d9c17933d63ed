#pragma once
#include <Python.h>

namespace weft::python {

/// The slots of weft.Tensor that Python's operators call, ended by a slot of zeros.
const PyType_Slot* operator_slots();

}  // namespace weft::python
