#pragma once
#include <algorithm>
#include <atomic>

#include "weft/backend.hpp"

// The table of a provider: kernels for the devices of another backend, by a library that is opened at run
// time. A provider has no device of its own: names, memory and queues are those of the backend that it
// serves.
namespace weft::backend {

/// `P` is a struct with static members:
///   kName, kServes             the provider's name, and the kind of device that it serves
///   const std::string& missing()   why the library can't be used; empty if it can
///   const char* version()      of the library, and
///   std::vector<KernelRecord> records()   that run it: asked for once nothing is missing
/// and, where its library runs on streams:
///   kStream                    what `native` of the served backend calls the stream of a queue
///   Outcome attach(weft_device), void detach(weft_device)   with the device current for the thread
template <class P>
class Provider {
 public:
  /// The stream of a launch's queue.
  static Outcome stream(const Launch& l, void** to) {
    weft_error error{};
    error.size = sizeof error;
    const weft_code code = served.load()->native(l.raw()->device, l.raw()->queue, P::kStream, to, &error);
    return code == WEFT_OK ? Outcome::ok() : Outcome::fail(code, "{}", error.text);
  }

  /// Whether a kernel of the device's own backend, whose name ends so, takes the call as the provider would.
  static bool home_takes(const OpCall& c, std::string_view ending) {
    const weft_backend* const home = served.load();
    const weft_kernel* const* list = nullptr;
    uint32_t n = 0;
    weft_error error{};
    error.size = sizeof error;
    if (!home || home->kernels(device_of_home, &list, &n, &error) != WEFT_OK) return false;
    return std::any_of(list, list + n, [&](const weft_kernel* k) {
      return c.op() == k->op && std::string_view(k->id).ends_with(ending) &&
             k->determinism >= c.determinism() && k->accepts(k, device_of_home, c.raw(), &error) == WEFT_OK;
    });
  }

  static weft_code negotiate(const weft_host* host, const weft_backend** backend, weft_error* error) {
    return guarded(error, [&]() -> Outcome {
      if (auto outcome = Host(host).speaks(); !outcome.good()) return outcome;
      the_host = host;
      *backend = &kTable;
      return Outcome::ok();
    });
  }

 private:
  static constexpr bool kHasStreams = requires { P::kStream; };

  static weft_code probe(weft_probe* p, weft_error* error) {
    return guarded(error, [&] {
      write(p, &weft_probe::n_devices, P::missing().empty() ? 1 : 0);
      write_text(p, &weft_probe::reason, P::missing());
      return Outcome::ok();
    });
  }
  static weft_code kernels(weft_device, const weft_kernel* const** list, uint32_t* n, weft_error* error) {
    return guarded(error, [&]() -> Outcome {
      if (!P::missing().empty()) return Outcome::fail(WEFT_UNAVAILABLE, "{}", P::missing());
      table().set_host(the_host);
      *list = table().data();
      *n = table().size();
      return Outcome::ok();
    });
  }
  static KernelTable& table() {
    static KernelTable all(P::kName, {[] {
                             auto records = P::records();
                             for (KernelRecord& r : records) r.contents = P::version();
                             return records;
                           }()},
                           &KernelTable::launch_now, kHasStreams ? uint32_t{WEFT_KERNEL_RECORDABLE} : 0);
    return all;
  }
  // `memory_free` leaves its device current, which is what handles of libraries are made for.
  static weft_code attach(const weft_backend* home, weft_device device, const weft_capability*,
                          weft_error* error) {
    return guarded(error, [&]() -> Outcome {
      if (!home->native || !home->memory_free)
        return Outcome::fail(WEFT_UNSUPPORTED, "{} does not give its streams", home->name);
      served = home, device_of_home = device;
      home->memory_free(device);
      if constexpr (kHasStreams) return P::attach(device);
      return Outcome::ok();
    });
  }
  static void detach(weft_device device) {
    served.load()->memory_free(device);
    if constexpr (kHasStreams) P::detach(device);
  }

  static inline std::atomic<const weft_backend*> served = nullptr;
  static inline std::atomic<weft_device> device_of_home = nullptr;
  static inline std::atomic<const weft_host*> the_host = nullptr;
  static constexpr weft_backend kTable = {.size = sizeof(weft_backend),
                                          .abi = WEFT_ABI,
                                          .name = P::kName,
                                          .version = "0.1.0",
                                          .probe = probe,
                                          .kernels = kernels,
                                          .serves = P::kServes,
                                          .attach = kHasStreams ? attach : nullptr,
                                          .detach = kHasStreams ? detach : nullptr};
};

}  // namespace weft::backend
