#pragma once
#include <functional>

#include "conformance/seam/rig.h"

// Launches in memory that watches over itself.
namespace weft::conformance {

/// Bytes between two pages that may not be touched, at the end of theirs or at the beginning.
class Guarded {
 public:
  Guarded(size_t bytes, bool at_end);
  ~Guarded();
  Guarded(const Guarded&) = delete;
  std::byte* data() const { return begin_ + offset_; }
  /// Where the pages between begin, whose other bytes are zero, and how far behind that the data do.
  std::byte* begin() const { return begin_; }
  size_t offset() const { return offset_; }
  /// From now on nobody may write there.
  void protect();

 private:
  size_t all_ = 0, inner_ = 0, offset_ = 0;
  std::byte *base_ = nullptr, *begin_ = nullptr;
};

/// A tensor of this type whose elements begin `offset` bytes behind `data`.
weft_tensor tensor_at(std::byte* data, const seam::ConcreteType& type, DLDevice device, uint64_t offset = 0);

/// On host memory: each operand, result and workspace lies between pages that may not be touched, at the end
/// of its own or at the beginning, and operands that the call does not update may only be read. Whoever does
/// not keep to that ends the process: run it in a child.
void launch_between_pages(Rig& rig, seam::PreparedKernel& plan, const Ask& ask, bool at_end);

/// On any memory: each result that is no update of an operand lies within a larger buffer, whose other bytes
/// must be the same afterwards. What is wrong; empty: nothing.
std::string launch_among_others(Rig& rig, seam::PreparedKernel& plan, const Ask& ask);

/// Runs jobs 0 to n - 1 in child processes, on one thread, one after the other; what ends a child is the
/// fault of the job that it was at, and the next child goes on behind it. An Error of a job is a fault too.
/// One text for each job; empty: nothing happened. With `first_only` nothing is done after the first fault.
std::vector<std::string> in_children(size_t n, const std::function<void(size_t)>& job,
                                     bool first_only = false);

}  // namespace weft::conformance
