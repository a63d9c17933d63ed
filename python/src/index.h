#pragma once
#include "python/src/object.h"

namespace weft::python {

/// The slots of weft.Tensor for x[...] and x[...] = y, as NumPy has them; ended by a slot of zeros.
const PyType_Slot* index_slots();

/// The size of the first axis, as len() gives it.
int64_t length_of(const Tensor& tensor);
/// x[0], x[1] and so on, or from the last to the first: an iterator.
nb::object rows_of(nb::handle tensor, bool backwards);

/// Gives Tensor.__getitem__ its documentation.
void document_index();

}  // namespace weft::python
