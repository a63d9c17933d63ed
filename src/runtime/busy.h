#pragma once
#include <atomic>

#include "weft/status.h"

namespace weft::runtime {

/// Marks a session as running, for other threads to see.
class Busy {
 public:
  explicit Busy(std::atomic<bool>& flag) : flag_(flag), mine_(!flag.exchange(true)) {}
  ~Busy() {
    if (mine_) flag_ = false;
  }
  Status status() const {
    return mine_ ? Status() : invalid("this session is running on another thread; open one session a thread");
  }

 private:
  std::atomic<bool>& flag_;
  bool mine_;
};

}  // namespace weft::runtime
