#pragma once
#include <string>
#include <vector>

namespace weft::cli {

/// The devices that `weft check` tests.
struct AskedDevices {
  /// Each by its name, and by the argument that selects it alone: "mychip:1", "build/mychip.so:1".
  struct Device {
    std::string name, word;
  };
  std::vector<Device> devices;
  /// Reasons for devices that the backend counts but that can't be opened.
  std::vector<std::string> missing;
};

/// A backend stands for all of its devices, "NAME:1" for one. A plug-in is loaded, and stands for the backend
/// that it brings; "build/mychip.so:1" is the second device of that.
AskedDevices asked_devices(const std::string& word);

}  // namespace weft::cli
