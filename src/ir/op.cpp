#include "ir/op.h"

#include <algorithm>

namespace weft::ir {

const OpDef* find_op(std::string_view name) {
  const auto ops = all_ops();  // sorted: the build lists the folder in order
  const auto at = std::lower_bound(ops.begin(), ops.end(), name,
                                   [](const OpDef* op, std::string_view n) { return op->name < n; });
  return at != ops.end() && (*at)->name == name ? *at : nullptr;
}

void settle_attrs(const OpDef& op, Types inputs, std::vector<AttrValue>& attrs) {
  for (size_t i = 0; i < attrs.size(); ++i) {
    const std::string_view name = op.attrs[i].name;
    if (auto* axis = std::get_if<int64_t>(&attrs[i]); axis && name == "axis" && *axis < 0)
      *axis += inputs[0].rank();
    if (auto* axes = std::get_if<Shape>(&attrs[i]); axes && name == "axes")
      for (Dim& d : *axes)
        if (d.max() < 0) d = d + Dim(inputs[0].rank());
  }
  if (op.settle) op.settle(inputs, attrs);
}

Result<int64_t> resolve_axis(const char* op, int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return invalid("{}: axis must be in [{}, {}) for rank {}, got {}", op, -rank, rank, rank, axis);
  return axis < 0 ? axis + rank : axis;
}

}  // namespace weft::ir
