#pragma once
#include <span>

#include "link/flat.h"
#include "program/program.h"

// Passes over a placed program that save memory and copies. Decisions that needed an answer of a kernel are
// recorded in the choices; with `decided`, they are taken from there, and no kernel is asked.
namespace weft::link {

using Devices = std::span<seam::Device* const>;

/// The offset of the result in its operand's bytes, for a call that can be a view: a reshape, a permute of
/// axes of size 1, a slice along the first axis. None where it must be computed, or the offset is not
/// aligned.
std::optional<uint64_t> view_offset(const seam::CallDesc& call, Devices devices);

/// Operands of a concat along the first axis are written directly into its result, and the concat is removed.
void join_pieces(const program::CompiledProgram& program, FlatProgram& flat, Devices devices);

/// Moves calls that free more memory than they take to the earliest place. Returns each call's old number.
/// With `known`, uses that order; returns none where the calls differ.
std::vector<uint32_t> free_early(const program::CompiledProgram& program, FlatProgram& flat,
                                 const std::vector<uint32_t>* known = nullptr);

/// A sum of results whose kernels can accumulate is made in one buffer, and the additions are removed.
void add_in_place(const program::CompiledProgram& program, FlatProgram& flat, Devices devices, bool decided);

/// Results reuse the memory of an operand after its last read, where the kernel accepts an in-place call.
void reuse_operands(const program::CompiledProgram& program, FlatProgram& flat, Devices devices,
                    bool decided);

/// The call's kernel, prepared again with other places for its results; null where it refuses, needs more
/// workspace, or guarantees less.
std::shared_ptr<seam::PreparedKernel> ask_again(const FlatCall& call, seam::CallDesc desc, Devices devices);

/// Writer and readers of each value that is no view; its views count as the value itself.
class Flow {
 public:
  Flow(const program::CompiledProgram& program, const FlatProgram& flat);
  static constexpr size_t kEnd = SIZE_MAX;  ///< readers: outputs of the program, and new values of states

  struct Fact {
    int64_t maker = -1;  ///< the call; -1: it exists before the run
    size_t last = 0;     ///< the last call that reads it
    size_t before = 0;   ///< the reader before that one; `last` where there is none
    size_t readers = 0;  ///< calls, and the end
    bool own = false;    ///< made by a call, in memory that no other call overwrites
  };
  int32_t root(int32_t value) const;
  const Fact& of(int32_t value) const { return facts_[static_cast<size_t>(root(value))]; }
  /// Is it `own`, and alone in its memory?
  bool is_own(int32_t value) const;
  /// It reuses the memory of another `own` value.
  void takes_over(int32_t value);
  /// Replaces `value`, which no call makes any more, by `other` in all its readers.
  void becomes(int32_t value, int32_t other);

 private:
  void made(int32_t root_value, int64_t call);
  const FlatProgram& flat_;
  std::vector<Fact> facts_;
};

}  // namespace weft::link
