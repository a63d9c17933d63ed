#pragma once
#include <string>
#include <string_view>

namespace weft {

/// A text out of a file, or a name, as messages show it: a long one is cut between two characters and ends in
/// "...". A hostile file must not fill a terminal or a log.
inline std::string shown(std::string_view text, size_t most = 120) {
  if (text.size() <= most) return std::string(text);
  size_t end = most - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "...";
}

/// A node of a program as errors name it: `node "mlp.matmul", from model.py:12`.
inline std::string shown_node(std::string_view where, std::string_view from) {
  std::string text = "node \"" + shown(where) + "\"";
  return from.empty() ? text : text.append(", from ").append(from);
}

}  // namespace weft
