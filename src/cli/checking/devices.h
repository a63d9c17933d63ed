#pragma once
#include <string>
#include <vector>

namespace weft::cli {

/// What `weft check` is asked to hold to the contract.
struct AskedDevices {
  /// Each by its name, and by the word that asks for it alone: "mychip:1", "build/mychip.so:1".
  struct Device {
    std::string name, word;
  };
  std::vector<Device> devices;
  /// Of devices that the backend counts and that can't be opened.
  std::vector<std::string> missing;
};

/// A backend stands for all of its devices, "NAME:1" for one. A plug-in is loaded, and stands for the backend
/// that it brings; "build/mychip.so:1" is the second device of that.
AskedDevices asked_devices(const std::string& word);

}  // namespace weft::cli
