#pragma once
#include <functional>

#include "conformance/seam/rig.h"

// Launches in guarded memory.
namespace weft::conformance {

/// Bytes between two inaccessible pages, at the end or at the beginning of the pages between.
class Guarded {
 public:
  Guarded(size_t bytes, bool at_end);
  ~Guarded();
  Guarded(const Guarded&) = delete;
  std::byte* data() const { return begin_ + offset_; }
  /// The pages between, whose other bytes are zero, and the offset of the data in them.
  std::byte* begin() const { return begin_; }
  size_t offset() const { return offset_; }
  /// Makes the bytes read-only.
  void protect();

 private:
  size_t all_ = 0, inner_ = 0, offset_ = 0;
  std::byte *base_ = nullptr, *begin_ = nullptr;
};

/// A tensor of this type whose elements begin `offset` bytes after `data`.
weft_tensor tensor_at(std::byte* data, const seam::ConcreteType& type, DLDevice device, uint64_t offset = 0);

/// In host memory: each operand, result and workspace is between inaccessible pages, at the end or the
/// beginning of its own, and operands that the call does not update are read-only. A violation crashes the
/// process, so run it in a child.
void launch_between_pages(Rig& rig, seam::PreparedKernel& plan, const Ask& ask, bool at_end);

/// In any memory: each result that is no update of an operand is inside a larger buffer, whose other bytes
/// must not change. Returns what is wrong; empty if nothing.
std::string launch_among_others(Rig& rig, seam::PreparedKernel& plan, const Ask& ask);

/// Runs jobs 0 to n - 1 in child processes, on one thread, in order. A crash is the fault of the current job,
/// and the next child continues after it. An Error of a job is a fault too. Returns a text for each job,
/// empty if it passed. With `first_only` it stops after the first fault.
std::vector<std::string> in_children(size_t n, const std::function<void(size_t)>& job,
                                     bool first_only = false);

}  // namespace weft::conformance
