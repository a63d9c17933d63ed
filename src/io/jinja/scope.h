#pragma once
#include "io/jinja/value.h"

namespace weft::io::jinja {

/// One rendering. Templates are untrusted, so resources are bounded: steps and depth here, memory by a Meter.
class Run {
 public:
  void step() {
    if (--steps_left_ < 0) throw Error(invalid("the chat template runs without an end"));
  }
  void write(std::string_view text) {
    if (text.size() > Meter::kMost - written_)
      throw Error(invalid("the chat template writes more than {} MiB", Meter::kMost >> 20));
    written_ += text.size();
    *out_ += text;
  }
  std::string take_text() { return std::move(text_); }

  /// Captures output while it lives.
  class Capture {
   public:
    explicit Capture(Run& run) : run_(run), outside_(std::exchange(run.out_, &text_)) {}
    ~Capture() {
      run_.out_ = outside_;
      run_.written_ -= text_.size();
    }
    Capture(const Capture&) = delete;
    const std::string& text() const { return text_; }

   private:
    Run& run_;
    std::string text_;
    std::string* outside_;
  };

  /// A running macro, with the depth of its body, which takes stack.
  class Inside {
   public:
    Inside(Run& run, int depth) : run_(run), depth_(depth) {
      if ((run_.depth_ += depth_) > 1000) throw Error(invalid("macros call one another without an end"));
    }
    ~Inside() { run_.depth_ -= depth_; }
    Inside(const Inside&) = delete;

   private:
    Run& run_;
    int depth_;
  };

 private:
  std::string text_;
  std::string* out_ = &text_;
  size_t written_ = 0;  // bytes of output, including captured ones
  int64_t steps_left_ = 1'000'000;
  int depth_ = 0;
};

/// The names in scope at a point of a template.
struct Scope {
  Run& run;
  Scope* outer = nullptr;
  std::vector<std::pair<std::string, Value>> names;

  Value get(const std::string& name) const {
    for (const Scope* s = this; s; s = s->outer)
      for (const auto& [key, value] : s->names)
        if (key == name) return value;
    return Undefined{name};
  }
  void set(const std::string& name, Value value) {
    for (auto& [key, old] : names)
      if (key == name) {
        old = std::move(value);
        return;
      }
    names.emplace_back(name, std::move(value));
  }
};

/// How a statement ended.
enum class Flow { next, leave_loop, next_round };

/// Expressions and statements, compiled to functions.
using Expression = std::function<Value(Scope&)>;
using Statement = std::function<Flow(Scope&)>;

}  // namespace weft::io::jinja
