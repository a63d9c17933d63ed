#pragma once
#include <string>
#include <variant>
#include <vector>

#include "weft/dtype.h"
#include "weft/shape.h"

namespace weft {

struct Bytes {
  std::string data;
  friend bool operator==(const Bytes&, const Bytes&) = default;
};

/// The value of an attribute: integer, float, list of dimensions, string, or bytes. The order is that of
/// WEFT_ATTR_*.
using AttrValue = std::variant<int64_t, double, Shape, std::string, Bytes>;

/// An attribute by name, as program files and backends see it.
struct Attr {
  std::string name;
  AttrValue value;
  friend bool operator==(const Attr&, const Attr&) = default;
};

/// "0.5", "[2, batch]", "\"mean\"".
std::string text(const AttrValue& value);

/// dtype and shape of a value; a dimension may be symbolic.
struct TensorType {
  DType dtype = DType::f32;
  Shape shape;

  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  friend bool operator==(const TensorType&, const TensorType&) = default;
};
/// "f32[4, batch*16]".
std::string text(const TensorType& type);

}  // namespace weft
