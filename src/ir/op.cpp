#include "ir/op.h"

#include <algorithm>

namespace weft::ir {

const OpDef* find_op(std::string_view name) {
  const auto ops = all_ops();  // sorted: the build lists the folder in order
  const auto at = std::lower_bound(ops.begin(), ops.end(), name,
                                   [](const OpDef* op, std::string_view n) { return op->name < n; });
  return at != ops.end() && (*at)->name == name ? *at : nullptr;
}

Result<int64_t> resolve_axis(const char* op, int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return invalid("{}: axis must be in [{}, {}) for rank {}, got {}", op, -rank, rank, rank, axis);
  return axis < 0 ? axis + rank : axis;
}

}  // namespace weft::ir
