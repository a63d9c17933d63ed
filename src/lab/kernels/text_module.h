#pragma once
#include <memory>
#include <string>

#include "seam/device.h"

namespace weft::lab {

/// A text in a device's own language, compiled by the device's backend.
class TextModule {
 public:
  /// `entry` is the function of the text that launches run; `name` is for errors. Errors: unsupported where
  /// the text refuses (`#error weft: unsupported`), else the compiler's log.
  static Result<std::unique_ptr<TextModule>> compile(seam::Device& device, const std::string& text,
                                                     const char* entry, const std::string& name);
  ~TextModule() { device_.backend().release_module(module_); }
  TextModule(const TextModule&) = delete;

  weft_module c() const { return module_; }

 private:
  TextModule(seam::Device& device, weft_module module) : device_(device), module_(module) {}

  seam::Device& device_;
  weft_module module_;
};

}  // namespace weft::lab
