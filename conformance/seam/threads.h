#pragma once
#include "base/thread_pool.h"

namespace weft::conformance {

/// Restores the thread count at its end.
class Threads {
 public:
  Threads() : before_(thread_count()) {}
  ~Threads() { set_thread_count(before_); }
  Threads(const Threads&) = delete;
  void use(int n) { set_thread_count(n); }

 private:
  int before_;
};

}  // namespace weft::conformance
