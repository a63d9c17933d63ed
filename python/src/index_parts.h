#pragma once
#include <vector>

#include "python/src/object.h"

namespace weft::python {

/// What an index says of one axis of the tensor, or, for None, of the result.
struct Part {
  enum class Kind : uint8_t { number, range, fresh, list } kind;
  int64_t number = 0;
  nb::object slice = {};
  Tensor list = {};      // of i64 numbers
  bool checked = false;  // they are known to be within the axis
  Tensor given = {};     // those of a tensor, as they were given
  size_t axis = 0;       // of the tensor that they index
};

/// An index taken apart, and checked against a tensor's shape.
class Index {
 public:
  Index(const Tensor& x, PyObject* key);

  std::vector<Part> parts;
  bool lists = false;
  bool parted = false;  // numbers or lists stand on both sides of '...', which may stand for no axis

  /// Of an index that a kernel found outside of an axis, which says neither which axis of the tensor it was
  /// nor what was written.
  void check_tensors() const;

 private:
  void add(PyObject* o);
  void add_all();
  void add_number(int64_t i);
  void add_list(PyObject* o);
  void add_mask(const Tensor& mask);
  void check_numbers(const Tensor& list, size_t axis) const;

  const Tensor& x_;
  Shape shape_;
  size_t next_ = 0;
};

}  // namespace weft::python
