#pragma once
#include <cstdlib>
#include <filesystem>
#include <string>

#include "run_command.h"

namespace weft {

inline bool has_browser() { return std::system("command -v chromium >/dev/null") == 0; }

/// What Chromium makes of a page, as text, without a network.
inline std::string in_browser(const std::string& page) {
  const std::string dom =
      run_command("chromium --headless --no-sandbox --disable-gpu --user-data-dir=" + page +
                  ".profile --host-resolver-rules='MAP * ~NOTFOUND' --virtual-time-budget=5000 "
                  "--dump-dom file://" +
                  page + " 2>/dev/null")
          .text;
  std::filesystem::remove_all(page + ".profile");
  return dom;
}

inline size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++n;
  return n;
}

}  // namespace weft
