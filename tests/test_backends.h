#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "weft/backends.h"

namespace weft::testing {

/// Loads a plug-in that the build placed beside the tests, once. False where it was not built.
inline bool load_plugin(const std::string& name) {
  if (is_backend_available(name)) return true;
  const auto path = std::filesystem::path(WEFT_BINARY_DIR) / "plugins" / (name + ".so");
  if (!std::filesystem::exists(path)) return false;
  load_backend(path);
  return true;
}

/// Those of `wanted` that are here, plug-ins loaded.
inline std::vector<std::string> backends(std::vector<std::string> wanted) {
  std::erase_if(wanted,
                [](const std::string& name) { return !is_backend_available(name) && !load_plugin(name); });
  return wanted;
}

/// What `f` raises, in words.
inline std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace weft::testing

/// The build makes every plug-in, so one that is missing fails the test.
#define WEFT_NEEDS_PLUGIN(name) \
  ASSERT_TRUE(::weft::testing::load_plugin(name)) << "plugins/" << name << ".so was not built"

/// Sanitizer builds leave out most backends.
#define WEFT_NEEDS_BACKEND(name) \
  if (!::weft::is_backend_available(name)) GTEST_SKIP() << name << " is not built here"
