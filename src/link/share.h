#pragma once
#include <span>

#include "link/flat.h"
#include "program/program.h"

// Calls of a placed program in an order, and values in places, that need less memory and copy less. What is
// decided by asking kernels is noted in the choices; with `decided`, those say it, and nothing is asked.
namespace weft::link {

using Devices = std::span<seam::Device* const>;

/// Where in its operand's bytes the result of a call lies that only moves: a reshape, a permute of axes of
/// size 1, a part along the first axis. None where it has to be computed, or would begin at an offset that
/// kernels don't take.
std::optional<uint64_t> view_offset(const seam::CallDesc& call, Devices devices);

/// Operands of a concat along the first axis are made where they lie in its result: then there is no concat.
void join_pieces(const program::CompiledProgram& program, FlatProgram& flat, Devices devices);

/// Calls run as soon as they can, if more memory is free after them than before. Returns each call's old
/// number. With `known`, takes that order, or returns none where there are other calls.
std::vector<uint32_t> free_early(const program::CompiledProgram& program, FlatProgram& flat,
                                 const std::vector<uint32_t>* known = nullptr);

/// A sum of results whose kernels can add to what is there is made in one place: then there is no addition.
void add_in_place(const program::CompiledProgram& program, FlatProgram& flat, Devices devices, bool decided);

/// Results take the memory of an operand that is not read any more, where the kernel takes a call that writes
/// over it.
void reuse_operands(const program::CompiledProgram& program, FlatProgram& flat, Devices devices,
                    bool decided);

/// The call's kernel, prepared for the same call with its results elsewhere; null where it refuses, or where
/// it would need more workspace or promise less.
std::shared_ptr<seam::PreparedKernel> ask_again(const FlatCall& call, seam::CallDesc desc, Devices devices);

/// Who makes and reads each value that is a view of no other; its views count as itself.
class Flow {
 public:
  Flow(const program::CompiledProgram& program, const FlatProgram& flat);
  static constexpr size_t kEnd = SIZE_MAX;  ///< of outputs, and of what states become

  struct Fact {
    int64_t maker = -1;  ///< the call; -1: it is there from the beginning
    size_t last = 0;     ///< the call that reads it last
    size_t before = 0;   ///< the one that reads it before that; `last` where there is none
    size_t readers = 0;  ///< calls, and the end
    bool own = false;    ///< made by a call, in memory that no call of the program writes over
  };
  int32_t root(int32_t value) const;
  const Fact& of(int32_t value) const { return facts_[static_cast<size_t>(root(value))]; }
  /// Is it `own`, and all that is in that memory?
  bool is_own(int32_t value) const;
  /// It takes the memory of one that is its own.
  void takes_over(int32_t value);
  /// Nobody makes `value` any more: it is `other`, which is read where `value` was.
  void becomes(int32_t value, int32_t other);

 private:
  void made(int32_t root_value, int64_t call);
  const FlatProgram& flat_;
  std::vector<Fact> facts_;
};

}  // namespace weft::link
