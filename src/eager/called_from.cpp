#include "eager/called_from.h"

#include <atomic>

namespace weft::eager {
namespace {
std::atomic<CalledFrom (*)()> asked{nullptr};
constinit thread_local const AsCalledFrom* innermost = nullptr;
}  // namespace

CalledFrom called_from() {
  if (innermost && innermost->line_) return innermost->line_;
  const auto ask = asked.load(std::memory_order_relaxed);
  return ask ? ask() : nullptr;
}

void set_called_from(CalledFrom (*ask)()) { asked.store(ask, std::memory_order_relaxed); }

AsCalledFrom::AsCalledFrom(CalledFrom line) : line_(std::move(line)), outer_(innermost) { innermost = this; }
AsCalledFrom::~AsCalledFrom() { innermost = outer_; }

}  // namespace weft::eager
