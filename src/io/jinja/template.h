#pragma once
#include "io/jinja/value.h"

namespace weft::io::jinja {

/// A parsed template: the part of Jinja2 that chat templates use. Everything else is refused.
///
/// Errors   corrupt or unsupported, with the line.
class Template {
 public:
  explicit Template(std::string_view source);
  ~Template();

  /// Renders the template. Raises if the template does, or exceeds its limits.
  std::string render(std::vector<std::pair<std::string, Value>> variables) const;

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace weft::io::jinja
