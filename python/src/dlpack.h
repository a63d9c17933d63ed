#pragma once
#include "python/src/object.h"

// Memory that is shared with other libraries, by DLPack and by Python's own buffers. No element is copied.
namespace weft::python {

/// A capsule for `other.__dlpack__`'s reader. `versioned`: of DLPack 1, which says whether the memory may be
/// written.
nb::object to_capsule(const Tensor& tensor, bool versioned);
/// A tensor on the memory of an object that has `__dlpack__`, or of a capsule.
Tensor from_capsule_or_object(nb::handle o, const std::string& backend);
/// (device type, device number) in DLPack's numbers.
nb::tuple dlpack_device(const Tensor& tensor);

/// Nothing may write to this memory: it counts as used by more programs than there can be.
void make_read_only(const Tensor& tensor);

/// The letter that Python's struct and NumPy have for a dtype; null: they have none.
const char* letter_of(DType dtype);
/// A tensor on the memory of an object that has Python's buffer protocol, as NumPy's arrays do.
Tensor from_buffer(nb::handle o, const std::string& backend);
/// A tensor of its own with the elements of such an object, whatever its strides.
Tensor copy_of_buffer(nb::handle o, const std::string& backend);
/// The slots of weft.Tensor that hand out its memory, ended by a slot of zeros.
const PyType_Slot* buffer_slots();

/// Raises TypeError where the elements of an array, or a scalar of NumPy's, are times, texts or records.
void refuse_no_numbers(nb::handle o, const char* where);

}  // namespace weft::python
