#pragma once
#include "io/jinja/value.h"

namespace weft::io::jinja {

/// A template that was read: Jinja2 as chat templates use it. What else there is of it is refused.
///
/// Errors   corrupt or unsupported, with the line.
class Template {
 public:
  explicit Template(std::string_view source);
  ~Template();

  /// The text that it makes of the variables. Raises where the template does, or runs without an end.
  std::string render(std::vector<std::pair<std::string, Value>> variables) const;

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace weft::io::jinja
