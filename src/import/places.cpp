#include "import/places.h"

namespace weft::importer {

ir::Value count(ir::Builder& b, Dim n) {
  return b.one("iota", {}, {{"size", Shape{n}}, {"dtype", std::string("i64")}});
}
ir::Value number(ir::Builder& b, Dim n) { return b.full(1, {}, DType::i64, n); }

ir::Value gather(ir::Builder& b, ir::Value x, ir::Value index, int64_t axis) {
  return b.gather(x, index, axis, 0);
}
ir::Value with_axis(ir::Builder& b, ir::Value x) { return x.rank() == 0 ? b.reshape(x, {1}) : x; }

ir::Value to_end(ir::Builder& b, ir::Value x, int64_t axis) {
  Shape order;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != axis) order.push_back(i);
  order.push_back(axis);
  return axis == x.rank() - 1 ? x : b.one("permute", {x}, {{"axes", order}});
}
ir::Value from_end(ir::Builder& b, ir::Value x, int64_t axis) {
  Shape order;
  for (int64_t i = 0; i + 1 < x.rank(); ++i) order.push_back(i);
  order.insert(static_cast<size_t>(axis), Dim(x.rank() - 1));
  return axis == x.rank() - 1 ? x : b.one("permute", {x}, {{"axes", order}});
}
ir::Value cut(ir::Builder& b, ir::Value x, const Shape& like, int64_t axis) {
  for (size_t i = 0; i < like.size(); ++i)
    if (static_cast<int64_t>(i) != axis && !(x.shape()[i] == like[i]))
      x = b.one("slice", {x}, {{"axis", int64_t(i)}, {"stop", Shape{like[i]}}});
  return x;
}

ir::Value scattered(Call& c, const char* op, ir::Value x, ir::Value index, ir::Value source) {
  const int64_t axis = c.axis("dim", x.rank());
  if (x.rank() != index.rank() || x.rank() == 0) {
    c.refuse(invalid("self and index must have as many axes"));
    return x;
  }
  for (size_t i = 0; i < x.shape().size(); ++i)
    if (static_cast<int64_t>(i) != axis && !(x.shape()[i] == index.shape()[i])) {
      c.refuse(fail(Code::unsupported, "an index that leaves out parts of self along other axes"));
      return x;
    }
  const auto y = c.b.one(op, {to_end(c.b, x, axis), to_end(c.b, index, axis), to_end(c.b, source, axis)},
                         {{"axis", x.rank() - 1}, {"batch", x.rank() - 1}});
  return from_end(c.b, y, axis);
}
ir::Value source_of(Call& c, ir::Value x, ir::Value index) {
  if (c.has("value")) return c.b.broadcast(c.as(c.required("value"), x.dtype()), index.shape());
  return cut(c.b, c.b.cast(c.tensor("src"), x.dtype()), index.shape(), -1);
}

}  // namespace weft::importer
