#pragma once
#include <optional>
#include <string>

#include "runtime/trace.h"

namespace weft::cli {

/// What a command does, by name and time, as a file for Perfetto or chrome://tracing. Without a path, nothing
/// is noted.
class Tracing {
 public:
  explicit Tracing(const std::string& path) : path_(path) {
    if (!path.empty()) trace_.emplace();
  }

  runtime::Trace* trace() { return trace_ ? &*trace_ : nullptr; }
  /// `what()`, under this name.
  template <class F>
  auto operator()(const char* kind, const char* name, F&& what) {
    const runtime::Trace::Timed timed(trace(), kind, name);
    return what();
  }
  void write() const;

 private:
  std::string path_;
  std::optional<runtime::Trace> trace_;
};

}  // namespace weft::cli
