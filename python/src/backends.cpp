#include "weft/backends.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/module.h"
#include "python/src/object.h"
#include "seam/registry.h"
#include "weft/ledger.h"

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

void set_default(nb::handle name) {
  const auto names =
      nb::isinstance<nb::str>(name) ? std::vector<std::string>() : nb::cast<std::vector<std::string>>(name);
  const std::string one = names.empty() && nb::isinstance<nb::str>(name) ? nb::cast<std::string>(name) : "";
  const Unlocked released;
  if (one.empty())
    set_default_backends(names);
  else
    set_default_backend(one);
}

nb::list rows() {
  nb::list all;
  for (const LedgerRow& r : ledger_rows()) {
    nb::dict row;
    row["device"] = r.device, row["op"] = r.op, row["kernel"] = r.kernel;
    row["calls"] = r.calls, row["bytes"] = r.bytes, row["why"] = r.why;
    all.append(row);
  }
  return all;
}

seam::Device& opened(const std::string& backend) {
  return *value_or_raise(seam::registry().open(backend.empty() ? default_backend() : backend));
}

struct BackendObject {
  std::string name;
  std::vector<std::unique_ptr<OnBackend>> entered = {};

  explicit BackendObject(std::string n) : name(std::move(n)) {}
  BackendObject(const BackendObject&) = delete;
};

}  // namespace

void bind_backends(nb::module_& m) {
  const auto unlocked = nb::call_guard<Unlocked>();
  m.def("get_available_backends", &get_available_backends, unlocked,
        "Names of the backends that can be used, in the order in which they were found.");
  m.def("is_backend_available", &is_backend_available, "name"_a, unlocked, "Can this backend be used?");
  m.def(
      "get_backend_info",
      [](const std::string& name) {
        std::optional<BackendInfo> info;
        {
          const Unlocked released;
          info = get_backend_info(name);
        }
        return dict_of(*info);
      },
      "name"_a,
      "What is known of a backend and its devices.\n\nErrors   weft.InvalidArgument when no backend has this "
      "name; it lists those there are.");
  m.def("default_backend", &default_backend, unlocked,
        "The backend that new tensors live on, for this thread.");
  m.def("default_backends", &default_backends, "The list as it was set: one name, where one was.");
  m.def("set_default_backend", set_default, "name"_a,
        nb::sig("def set_default_backend(name: str | Sequence[str]) -> None"),
        "Sets the backend that this thread's new tensors live on. A list, or \"cuda,native\": the first that "
        "can be opened is used, and the\n"
        "later ones are where the policy may turn to.\n\n"
        "Errors   weft.InvalidArgument when no backend has this name; weft.Unavailable, with every reason, "
        "where none can be opened.");
  m.def(
      "device_memory", [](const std::string& backend) { return opened(backend).live_bytes(); },
      "backend"_a = "", unlocked,
      "Bytes that a device's backend has given out: to tensors and programs, and what is kept for the next "
      "ones. Empty: the default "
      "backend.");
  m.def(
      "release_memory", [](const std::string& backend) { opened(backend).trim(); }, "backend"_a = "",
      unlocked, "Gives the memory back that a device keeps for the next tensors.");
  m.def("load_backend", &load_backend, "path"_a, unlocked, "Loads a backend from a shared object.");
  m.def("_ledger_rows", rows);
  m.def("ledger_text", &ledger_text, "The ledger as a table for people.");
  m.def("reset_ledger", &reset_ledger, "Forgets all launches so far.");
  nb::class_<BackendObject>(
      m, "on_backend",
      "Makes a backend this thread's default while it lives: `with weft.on_backend(\"reference\"):`.")
      .def(nb::init<std::string>(), "name"_a)
      .def("__enter__",
           [](nb::handle self) {
             auto& b = nb::cast<BackendObject&>(self);
             b.entered.push_back(std::make_unique<OnBackend>(b.name));
             return nb::borrow(self);
           })
      .def(
          "__exit__",
          [](BackendObject& b, nb::handle, nb::handle, nb::handle) {
            if (b.entered.empty()) throw Error(invalid("on_backend: left more often than it was entered"));
            b.entered.pop_back();
          },
          nb::arg().none(), nb::arg().none(), nb::arg().none());
}

}  // namespace weft::python
