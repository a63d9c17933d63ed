#pragma once
#include <cstring>
#include <string>

#include "weft/backend.h"
#include "weft/status.h"

namespace weft::seam {

/// Turns a weft_code and its text into a Status.
class CError {
 public:
  CError() {}  // leaves the text alone: this stands on the path of every launch
  /// For the next call: without a text, whatever the last one wrote.
  weft_error* out() {
    error_.size = sizeof(weft_error);
    error_.text[0] = 0;
    return &error_;
  }
  /// What a backend wrote, which may be nothing, or a text without an end.
  WEFT_COLD std::string text() const {
    return std::string(error_.text, strnlen(error_.text, sizeof error_.text));
  }
  Status status(weft_code code) const {
    if (code == WEFT_OK) return {};
    return Status(static_cast<Code>(code), error_.text[0] ? text() : "it gave no reason");
  }

 private:
  weft_error error_;
};

}  // namespace weft::seam
