#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace weft::runtime {

/// Where the time goes, by name. Spans nest: one that begins within another ends before it. One thread.
class Trace {
 public:
  using Clock = std::chrono::steady_clock;
  struct Span {
    std::string name;
    const char* kind = "";       // "load", "link", "copy", "kernel", "run"
    std::string where;           // the node of a kernel
    int64_t start = 0, end = 0;  // nanoseconds from the beginning of the trace
  };

  /// Ends the span when it goes.
  class Timed {
   public:
    Timed(Trace* trace, const char* kind, std::string name, std::string where = {}) : trace_(trace) {
      if (!trace_) return;
      index_ = trace_->spans_.size();
      trace_->spans_.push_back({std::move(name), kind, std::move(where), trace_->now(), 0});
    }
    ~Timed() {
      if (trace_) trace_->spans_[index_].end = trace_->now();
    }
    Timed(const Timed&) = delete;

   private:
    Trace* trace_;
    size_t index_ = 0;
  };

  /// Nanoseconds since the trace began.
  int64_t now() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin_).count();
  }
  const std::vector<Span>& spans() const { return spans_; }

 private:
  Clock::time_point begin_ = Clock::now();
  std::vector<Span> spans_;
};

/// Nanoseconds of [0, `end`) that spans without spans inside them cover: time that has a name.
int64_t named_time(const Trace& trace, int64_t end);

}  // namespace weft::runtime
