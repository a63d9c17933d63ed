#pragma once
#include <map>
#include <mutex>
#include <optional>
#include <span>

#include "seam/call.h"
#include "seam/device.h"

// Which kernel is asked first for a call, because it was measured to be the fastest here.
namespace weft::seam {

/// What was measured of one call.
struct Measured {
  std::string call;                                   ///< its signature
  std::string kernel;                                 ///< the id of the fastest
  std::string contents;                               ///< of its code, as Registry::find_kernel gives it
  std::string instead;                                ///< the id of the kernel that selection alone takes
  uint64_t nanoseconds = 0, nanoseconds_instead = 0;  ///< medians
};

/// All that the choice of a kernel may depend on, in words: the same for equal calls, whichever policy,
/// device and process they come from.
std::string signature(const CallDesc& call);

/// By signature.
using MeasuredCalls = std::map<std::string, Measured, std::less<>>;
/// The file of a machine, which machine_of() tells, as text; and what such a text says: nothing where a
/// single line is none that this process would write there.
std::string measured_text(const std::string& machine, const MeasuredCalls& calls);
MeasuredCalls read_measured(const std::string& text, const std::string& machine);

/// Measurements by call signature, for each device, machine, driver and number of threads, in the user's
/// cache folder. They are hints: a kernel that is named is asked like any other, with the true call, and
/// passed over if it refuses, is unknown, or has other contents than when it was measured. A file that says
/// anything else than this process would write counts as none.
class Preferences {
 public:
  /// The kernel that was measured to be the fastest for the call on this device.
  std::optional<Measured> find(Device& device, const CallDesc& call);
  /// Adds measurements to those of the device, and writes them. They replace older ones of the same calls.
  ///
  /// Errors   io where the cache folder can't be written; they hold for this process all the same.
  Status keep(Device& device, std::span<const Measured> measured);
  /// Reads the files again when they are wanted next.
  void reload();

 private:
  using Calls = MeasuredCalls;
  Calls& of(Device& device);

  std::mutex mutex_;
  std::map<std::pair<uint32_t, int>, Calls> known_;  // by the device's index, and threads
};
Preferences& preferences();

/// While it lives, `select` on this thread goes by no measurement: for tools that judge what is chosen
/// without.
class Unmeasured {
 public:
  Unmeasured();
  ~Unmeasured();
  Unmeasured(const Unmeasured&) = delete;

 private:
  bool before_;
};

/// The processor's name, as Linux knows it.
std::string processor_name();
/// The machine as measurements see it: processor, threads, device, driver.
std::string machine_of(const Device& device);
/// The name of the device's file in the cache folder.
std::string preference_file(const Device& device);

}  // namespace weft::seam
