#pragma once
#include <span>
#include <string>

namespace weft::testing {

/// A good backend with one planted fault, and the check of honesty_test.cpp that must find it.
struct Liar {
  const char* name;   ///< its own, as a backend
  const char* on;     ///< the good backend that it wraps
  const char* fault;  ///< what it does wrong, in words
  const char* caught_by;
};
std::span<const Liar> liars();

/// Registers the liar on first use.
void wake(const Liar& liar);

}  // namespace weft::testing
