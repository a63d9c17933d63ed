#pragma once
#include <mutex>
#include <string>
#include <unordered_map>

#include "weft/backend.h"
#include "weft/status.h"

namespace weft::loops {

/// Compiled texts of one opened device: equal texts are compiled once, whatever call they come from. Safe
/// from any thread; a second thread that wants a text waits until the first has compiled it. Modules live as
/// long as the device: its close_device ends those that are left.
class TextCache {
 public:
  TextCache(const weft_backend& backend, weft_device device) : backend_(backend), device_(device) {}
  Result<weft_module> compile(const std::string& text);

 private:
  const weft_backend& backend_;
  weft_device device_;
  std::mutex mutex_;
  std::unordered_map<std::string, weft_module> modules_;
};

}  // namespace weft::loops
