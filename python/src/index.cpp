#include "python/src/index.h"

#include "python/src/convert.h"
#include "weft/lists.h"
#include "weft/ops.h"

namespace weft::python {
namespace {

/// What an index says of one axis of the tensor, or of the result.
struct Part {
  enum class Kind : uint8_t { number, range, fresh, list } kind;
  int64_t number = 0;
  PyObject* slice = nullptr;
  Tensor list = {};  // of numbers
};

[[noreturn]] void raise_index_error(const std::string& message) {
  PyErr_SetString(PyExc_IndexError, message.c_str());
  throw nb::python_error();
}

}  // namespace

const PyType_Slot* index_slots() {
  static const PyType_Slot slots[] = {{0, nullptr}};
  return slots;
}

}  // namespace weft::python
