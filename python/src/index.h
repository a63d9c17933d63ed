#pragma once
#include <Python.h>

namespace weft::python {

/// The slots of weft.Tensor for x[...] and x[...] = y, as NumPy has them; ended by a slot of zeros.
const PyType_Slot* index_slots();

/// Gives Tensor.__getitem__ its documentation.
void document_index();

}  // namespace weft::python
