#pragma once
#include <string>
#include <vector>

#include "weft/status.h"

namespace weft {

struct DeviceInfo {
  std::string name;   ///< what set_default_backend takes: "reference", "opencl:1"
  std::string kind;   ///< "cpu", "opencl"
  std::string label;  ///< the device's own name
  std::string numerics;
  uint64_t memory = 0;      ///< bytes; 0 = unknown
  uint64_t max_buffer = 0;  ///< bytes
  uint32_t units = 0;
  bool computes = true;   ///< false: its results mean nothing, and nothing falls back to it
  bool compiles = false;  ///< compiles source text, so `loops` serves every op on it
};

/// One line of `weft backends`: found, then loaded, available or refused, and why.
struct BackendInfo {
  std::string name;
  std::string origin;  ///< "built in", or the path of the plug-in
  std::string version;
  std::string state;   ///< "available", "unavailable" (no device or library) or "refused" (not loaded)
  std::string reason;  ///< in words, unless available
  std::vector<DeviceInfo> devices;
  std::string serves;                ///< of a provider: the kind of device that its kernels run on
  std::vector<std::string> missing;  ///< devices that it reports but that can't be opened: "device 1: why"
  bool available() const { return state == "available"; }
};

/// Every backend that was found: built in, in the install folder, or loaded by path.
std::vector<BackendInfo> get_backends();
/// Names of the available ones, in the order in which they were found.
std::vector<std::string> get_available_backends();
bool is_backend_available(const std::string& name);
/// Raises when no backend has this name; the error lists the names there are.
BackendInfo get_backend_info(const std::string& name);

/// Loads a backend from a shared object. Raises, and says at which step it failed, when the file is no
/// backend, speaks another version, or is broken.
void load_backend(const std::string& path);

/// The backend that new tensors live on, for this thread. Until this thread sets its own: the available one
/// of the highest rank (weft_backend::rank), which is the fastest of the processor's.
///
/// Wherever a backend is named, an ordered list may stand, as in "cuda,opencl,native": the first that can be
/// opened is used. Skipped names, and why, are logged once and entered in the ledger. As far as the policy
/// allows, an op that the device refuses falls back to the later ones in the list, in that order, and to no
/// other.
std::string default_backend();
void set_default_backend(const std::string& name);
/// The same, as a list.
///
/// Errors   invalid_argument for no name; unavailable, with every reason, where none can be opened.
void set_default_backends(const std::vector<std::string>& names);
/// The list as it was set: one name, where one was.
std::vector<std::string> default_backends();
/// Makes a backend this thread's default while it lives. Raises when no backend has this name.
class OnBackend {
 public:
  explicit OnBackend(const std::string& names);
  ~OnBackend();
  OnBackend(const OnBackend&) = delete;

 private:
  std::string device_, names_;  // of before
};
/// The same, under the design documents' name.
std::string current_device();

}  // namespace weft
