#include "weft/backends.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/module.h"
#include "weft/backend.h"
#include "weft/ledger.h"
#include "weft/policy_scope.h"

// The queries of document 002, and what kernels ran.
namespace weft::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

nb::dict dict_of(const DeviceInfo& d) {
  nb::dict out;
  out["name"] = d.name, out["kind"] = d.kind, out["label"] = d.label, out["numerics"] = d.numerics;
  out["memory"] = d.memory, out["max_buffer"] = d.max_buffer, out["units"] = d.units;
  out["computes"] = d.computes, out["compiles"] = d.compiles;
  return out;
}

nb::dict dict_of(const BackendInfo& b) {
  nb::dict out;
  out["name"] = b.name, out["available"] = b.available(), out["state"] = b.state, out["reason"] = b.reason;
  out["origin"] = b.origin, out["version"] = b.version, out["serves"] = b.serves, out["missing"] = b.missing;
  nb::list devices;
  for (const auto& d : b.devices) devices.append(dict_of(d));
  out["devices"] = devices;
  return out;
}

}  // namespace

void bind_backends(nb::module_& m) {
  const auto unlocked = nb::call_guard<nb::gil_scoped_release>();
  m.def("get_available_backends", &get_available_backends, unlocked,
        "Names of the backends that can be used, in the order in which they were found.");
  m.def("is_backend_available", &is_backend_available, "name"_a, unlocked, "Can this backend be used?");
  m.def(
      "get_backend_info",
      [](const std::string& name) {
        std::optional<BackendInfo> info;
        {
          const nb::gil_scoped_release released;
          info = get_backend_info(name);
        }
        return dict_of(*info);
      },
      "name"_a,
      "What is known of a backend and its devices.\n\nErrors   weft.InvalidArgument when no backend has this "
      "name; it lists those there are.");
  m.def("default_backend", &default_backend, unlocked,
        "The backend that new tensors live on, for this thread.");
  m.def("set_default_backend", &set_default_backend, "name"_a, unlocked,
        "Sets it. \"cuda,native\" is a list: the first that can be opened is used.");
  m.def("load_backend", &load_backend, "path"_a, unlocked, "Loads a backend from a shared object.");
}

}  // namespace weft::python
