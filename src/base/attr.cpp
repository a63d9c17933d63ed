#include "weft/attr.h"

namespace weft {

std::string text(const AttrValue& value) {
  struct Print {
    std::string operator()(int64_t v) const { return fmt::format("{}", v); }
    std::string operator()(double v) const {
      auto s = fmt::format("{}", v);  // shortest text that reads back as the same double
      return s.find_first_of(".en") == std::string::npos ? s + ".0" : s;
    }
    std::string operator()(const Shape& v) const { return text(std::span<const Dim>(v)); }
    std::string operator()(const std::string& v) const { return '"' + v + '"'; }
    std::string operator()(const Bytes& v) const { return fmt::format("bytes({})", v.data.size()); }
  };
  return std::visit(Print{}, value);
}

std::string text(const TensorType& type) { return name(type.dtype) + text(std::span<const Dim>(type.shape)); }

}  // namespace weft
