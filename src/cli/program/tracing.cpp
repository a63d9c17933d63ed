#include "cli/program/tracing.h"

#include "cli/files.h"
#include "cli/show.h"

namespace weft::cli {

// The format of the Trace Event page: complete events, times in microseconds. Each kind is a row.
void Tracing::write() const {
  if (!trace_) return;
  const int64_t end = trace_->now();
  Json events = Json::list();
  for (const auto& s : trace_->spans()) {
    Json e{{"name", s.name},
           {"cat", s.kind},
           {"ph", "X"},
           {"pid", 1},
           {"tid", 1},
           {"ts", static_cast<double>(s.start) / 1e3},
           {"dur", static_cast<double>(s.end - s.start) / 1e3}};
    if (!s.where.empty()) e.set("args", {{"node", s.where}});
    events.push_back(e);
  }
  const double named = static_cast<double>(runtime::named_time(*trace_, end)) / static_cast<double>(end);
  write_text(
      path_,
      page_of({{"traceEvents", events},
               {"displayTimeUnit", "ns"},
               {"otherData",
                {{"microseconds", static_cast<double>(end) / 1e3}, {"share_of_time_with_a_name", named}}}}));
}

}  // namespace weft::cli
