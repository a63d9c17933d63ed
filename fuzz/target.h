#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "weft/status.h"

// What the fuzz targets share. A target is one file, fuzz/<name>.cpp, that defines target(); libFuzzer calls
// it with what it makes of the files in fuzz/corpus/<name>. scripts/fuzz builds and runs them.
//
// What Weft takes, it takes the same way when it is written and read again. What it refuses, it refuses in
// words, by a Status or an Error; whatever else leaves target() is a bug, and so is what the sanitizers see.
namespace weft::fuzz {

void target(std::string_view input);

/// Ends the process where a promise does not hold; libFuzzer keeps the input.
inline void expect(bool holds, std::string_view promise) {
  if (holds) return;
  std::fprintf(stderr, "a promise that does not hold: %.*s\n", static_cast<int>(promise.size()),
               promise.data());
  std::abort();
}

/// Was it refused? Then it says why, and is no fault of Weft's own.
inline bool refused(const Status& status) {
  if (status.ok()) return false;
  expect(!status.message().empty(), "a refusal says why");
  expect(status.code() != Code::internal, "a refusal is the input's fault: " + status.message());
  return true;
}
template <class T>
bool refused(const Result<T>& result) {
  return !result.ok() && refused(result.status());
}

/// The same of what raises.
template <class F>
bool refused_by(F&& raises) {
  try {
    raises();
  } catch (const Error& e) {
    return refused(e.status());
  }
  return false;
}

}  // namespace weft::fuzz

// libFuzzer's way in; this header is in one file of each program.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::fuzz::target({reinterpret_cast<const char*>(data), size});
  return 0;
}
