#pragma once
#include <memory>
#include <string>

namespace weft::eager {

/// The line of the user's program that calls an op, as "model.py:12"; null where nobody can tell.
using CalledFrom = std::shared_ptr<const std::string>;

/// Of the op that is being recorded on this thread, by a trace or by the tape.
CalledFrom called_from();
/// Who can tell: a language's bindings. It is asked on any thread, once for each op that is recorded.
void set_called_from(CalledFrom (*ask)());

/// While it lives, ops are called from `line`: those of a gradient from where the op itself was. Null: ask.
class AsCalledFrom {
 public:
  explicit AsCalledFrom(CalledFrom line);
  ~AsCalledFrom();
  AsCalledFrom(const AsCalledFrom&) = delete;

 private:
  CalledFrom line_;
  const AsCalledFrom* outer_;
  friend CalledFrom called_from();
};

}  // namespace weft::eager
