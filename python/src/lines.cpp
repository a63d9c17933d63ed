#include <dlfcn.h>

#include <array>

#include "eager/called_from.h"
#include "python/src/module.h"
#include "python/src/object.h"

// Which line of the user's program calls an op. It is asked for while ops are recorded, by a trace or by the
// tape; errors of a compiled program, or of backward(), are raised far from there.
namespace weft::python {
namespace {

/// The folder of the package, whose own lines are none of the user's: that of this extension.
const std::string& package_folder() {
  static const std::string folder = [] {
    Dl_info info{};
    const bool found = ::dladdr(reinterpret_cast<const void*>(&bind_lines), &info) != 0;
    const std::string path = found ? info.dli_fname : "";
    return path.substr(0, path.rfind('/') + 1);
  }();
  return folder;
}

/// A place in some code, and its line: null where it is the package's own. Ops of a loop are called from few
/// places, so lines are kept, and with them their code, or another one could be where it was.
struct Place {
  nb::object code;
  int at = -1;
  bool own = false;
  eager::CalledFrom line;
};

Place place_of(nb::object code, int at, int line) {
  Place place{.code = std::move(code), .at = at};
  const nb::object file = nb::borrow(reinterpret_cast<PyCodeObject*>(place.code.ptr())->co_filename);
  const char* const path = PyUnicode_AsUTF8(file.ptr());
  if (!path) PyErr_Clear();  // a name that UTF-8 can't say
  const std::string shown = path && *path ? path : "a file without a name";
  const std::string& folder = package_folder();
  place.own = !folder.empty() && shown.starts_with(folder);
  if (!place.own)
    place.line = std::make_shared<const std::string>(line > 0 ? fmt::format("{}:{}", shown, line) : shown);
  return place;
}

const Place& known(PyFrameObject* frame) {
  static auto& places =
      *new std::array<Place, 1024>;  // never freed: an interpreter that ends may have freed the code
  nb::object code = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
#if PY_VERSION_HEX >= 0x030B0000
  const int at = PyFrame_GetLasti(frame);
#else
  const int at = PyFrame_GetLineNumber(frame);
#endif
  const auto address = reinterpret_cast<uintptr_t>(code.ptr());
  Place& place = places[(address / 16 + static_cast<uintptr_t>(at)) % places.size()];
  if (place.code.ptr() != code.ptr() || place.at != at) {
    Place made = place_of(std::move(code), at, PyFrame_GetLineNumber(frame));
    std::swap(place, made);  // the code that was there is dropped when its place is filled again
  }
  return place;
}

// With Python's lock held, and perhaps an error of Python's set.
eager::CalledFrom line_here() {
  const nb::error_scope kept;
  nb::object frame = nb::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame.is_valid()) {
    auto* const f = reinterpret_cast<PyFrameObject*>(frame.ptr());
    const Place& place = known(f);
    if (!place.own) return place.line;
    frame = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(f)));
  }
  return nullptr;
}

eager::CalledFrom user_line() {
  CallFromPython* const call = CallFromPython::innermost;
  // With the lock held all along; or on a thread of C++, which nothing of Python's has called.
  if (!call) return Py_IsInitialized() && PyGILState_Check() ? line_here() : nullptr;
  if (!call->line_known) {
    std::optional<Locked> locked;
    if (!call->has_lock) locked.emplace();
    call->line = line_here();
    call->line_known = true;
  }
  return call->line;
}

}  // namespace

constinit thread_local CallFromPython* CallFromPython::innermost = nullptr;

void bind_lines() { eager::set_called_from(user_line); }

}  // namespace weft::python
