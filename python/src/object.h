#pragma once
#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "eager/called_from.h"
#include "eager/tensor_impl.h"

// Tensors as Python objects, without the search for a function that fits: what operators, ops and indexing
// use, which are called most.
namespace weft::python {

namespace nb = nanobind;

/// weft.Tensor; set once when the module is imported.
extern PyTypeObject* tensor_type;

inline bool is_tensor(PyObject* o) {
  return Py_TYPE(o) == tensor_type || PyType_IsSubtype(Py_TYPE(o), tensor_type);
}
/// The tensor in an object for which is_tensor() holds.
inline Tensor& tensor_in(PyObject* o) { return *nb::inst_ptr<Tensor>(o); }

/// A new Python object, or None for a tensor that is empty.
PyObject* to_object(Tensor tensor);
/// The same, a tuple of them.
PyObject* to_tuple(std::span<Tensor> tensors);

/// What is said where nanobind says no more than that a cast failed.
inline constexpr const char* kUnfit =
    "an argument, or what it holds, is of a type that is not accepted here; see help()";

/// A message of an error, with what Python's programs write in the place of C++.
std::string in_python(std::string text);

/// Sets Python's error of what is being handled: an Error as weft.Error, and so on. Only in a catch block.
void set_python_error();

/// The result of `f`, or null with Python's error set.
template <class F>
PyObject* guarded(F&& f) {
  try {
    return f();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

/// May Python's lock be kept while an op on this tensor runs? Releasing it costs as much as a small op, and a
/// thread that waits for it does not wait long. Where a device has a queue that is waited for, it never is
/// kept: who holds the queue's lock might want it.
bool is_quick(const Tensor& tensor);

/// While it lives, tensors that no operand places are made where `t` is.
class BesideTensor {
 public:
  explicit BesideTensor(const Tensor& t) {
    if (t && t.impl()->device) device_.emplace(*t.impl()->device);
  }

 private:
  std::optional<eager::OnDevice> device_;
};

/// Runs `f`, which takes Python's lock. A thread that takes it when the interpreter has begun to end is ended
/// by Python, by an unwinding that C++'s destructors do not let through; it sleeps instead until the process
/// is gone, as in Python 3.14.
template <class F>
auto unless_ended(F f) {
  try {
    return f();
  } catch (abi::__forced_unwind&) {
    for (;;) ::pause();
  }
}

/// A call of Weft's by Python, on this thread. All ops in it are called from one line, which is looked for
/// when one of them is recorded (lines.cpp): once, since that takes Python's lock.
struct CallFromPython {
  bool has_lock = false;  // Python's
  eager::CalledFrom line;
  bool line_known = false;
  static constinit thread_local CallFromPython* innermost;
};

/// Releases Python's lock while it lives, unless told to keep it.
class Unlocked {
 public:
  explicit Unlocked(bool keep = false)
      : call_{.has_lock = keep},
        outer_(std::exchange(CallFromPython::innermost, &call_)),
        state_(keep ? nullptr : PyEval_SaveThread()) {}
  ~Unlocked() {
    if (state_) unless_ended([this] { PyEval_RestoreThread(state_); });
    CallFromPython::innermost = outer_;
  }
  Unlocked(const Unlocked&) = delete;

 private:
  CallFromPython call_;
  CallFromPython* outer_;
  PyThreadState* state_;
};

/// Holds Python's lock while it lives, for what calls Python from anywhere.
class Locked {
 public:
  Locked()
      : outer_(std::exchange(CallFromPython::innermost, nullptr)), state_(unless_ended([] {
          while (!Py_IsInitialized()) ::pause();  // there is no lock to take any more
          return PyGILState_Ensure();
        })) {}
  ~Locked() {
    PyGILState_Release(state_);
    CallFromPython::innermost = outer_;
  }
  Locked(const Locked&) = delete;

 private:
  CallFromPython* outer_;
  PyGILState_STATE state_;
};

}  // namespace weft::python
