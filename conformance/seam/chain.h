#pragma once
#include "conformance/seam/rig.h"
#include "conformance/seam/usual.h"

namespace weft::conformance {

/// y += 1, over and over, between two buffers: each launch needs the one before, whichever queue it is in.
class Chain {
 public:
  static constexpr int64_t kElements = 50'000;

  Chain(Rig& rig, double first);
  void launch(seam::Queue& queue, int n);
  /// What is wrong with what lies there now, in the eyes of the rig's queue, which knows nothing of the
  /// others' order.
  Finding wrong() { return wrong_in(value_or_raise(rig_.download(last()))); }
  Finding wrong_in(const HostTensor& seen) const;
  /// Where the result of the last launch will be.
  const Rig::Operand& last() const { return *sides_[done_ % 2]; }
  size_t launched() const { return done_; }

 private:
  Rig& rig_;
  double first_;
  seam::PreparedPtr plan_;
  std::unique_ptr<Rig::Operand> one_, sides_[2], workspace_;
  size_t done_ = 0;
};

}  // namespace weft::conformance
