#pragma once
#include "io/jinja/value.h"

namespace weft::io::jinja {

/// One rendering. What it may use is bounded, since templates come from anywhere.
struct Run {
  std::string* out;
  int64_t steps_left = 1'000'000;
  int calls = 0;  // of macros, in one another

  void step() {
    if (--steps_left < 0 || out->size() > (size_t{1} << 28))
      throw Error(invalid("the chat template runs without an end"));
  }
};

/// Names that are known at a place of a template.
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

/// An expression and a statement, as what they do.
using Expression = std::function<Value(Scope&)>;
using Statement = std::function<Flow(Scope&)>;

}  // namespace weft::io::jinja
