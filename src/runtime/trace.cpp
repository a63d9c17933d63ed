#include "runtime/trace.h"

#include <algorithm>

namespace weft::runtime {

int64_t named_time(const Trace& trace, int64_t end) {
  const auto& spans = trace.spans();
  int64_t named = 0;
  for (size_t i = 0; i < spans.size(); ++i) {
    const bool holds_others = i + 1 < spans.size() && spans[i + 1].start < spans[i].end;
    if (!holds_others) named += std::max<int64_t>(0, std::min(spans[i].end, end) - spans[i].start);
  }
  return named;
}

}  // namespace weft::runtime
