#pragma once
#include "conformance/seam/rig.h"
#include "conformance/seam/usual.h"

namespace weft::conformance {

/// Repeated y += 1 between two buffers: each launch depends on the previous one, in whichever queue.
class Chain {
 public:
  static constexpr int64_t kElements = 50'000;

  Chain(Rig& rig, double first, int64_t elements = kElements);
  void launch(seam::Queue& queue, int n);
  /// What is wrong with the contents, read through the rig's queue, which is not ordered with the others.
  Finding wrong() { return wrong_in(value_or_raise(rig_.download(last()))); }
  Finding wrong_in(const HostTensor& seen) const;
  /// The buffer of the last launch's result.
  const Rig::Operand& last() const { return *sides_[done_ % 2]; }
  size_t launched() const { return done_; }

 private:
  Rig& rig_;
  double first_;
  seam::PreparedPtr plan_;
  std::unique_ptr<Rig::Operand> one_, sides_[2], workspace_;
  size_t done_ = 0;
};

/// A chain, and how many launches of it a queue is given at a time.
struct LastingChain {
  std::unique_ptr<Chain> chain;  ///< none: the device is faster than any that is tried
  int launches = 1;
};
/// The same with more work for a queue: larger operands, then more launches, then none.
LastingChain longer(Rig& rig, LastingChain it);
/// One of which a queue goes on for some milliseconds when all its launches are enqueued. Found by the clock,
/// not by sizes, from `least` launches on. An ordered queue.
LastingChain lasting_chain(Rig& rig, int least);

}  // namespace weft::conformance
