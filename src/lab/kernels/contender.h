#pragma once
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "conformance/seam/rig.h"
#include "lab/kernels/shared_memory.h"
#include "lab/kernels/turn.h"

namespace weft::lab {

/// How a kernel's process is started, and how much it may take.
struct Process {
  std::vector<std::string> command;  ///< a program that ends in serve_contender(), and its arguments
  double seconds = 20;               ///< that one answer may take; then it hangs
  double open_seconds = 0;           ///< that opening a kernel may take, if that is more
  uint64_t output_bytes = 1 << 20;   ///< that it may print
  uint64_t memory_bytes = 0;         ///< of shared memory
  std::vector<int> processors;       ///< on which it runs; empty: all
  /// In whose memory kernels compute that could in any, as those in Python; empty: in the host's.
  std::string device;
};

/// Whether processes that a kernel's process leaves when it ends become children of this one, which then ends
/// them: this one must not have other children meanwhile. They are ended in any case where the lab ends the
/// kernel's process, and where they are of its group.
void adopt_orphans(bool adopt);

/// A kernel in a process of its own, which stands still unless it is asked something. So nothing that it left
/// running works while another kernel is timed, or while its results are checked.
class Contender {
 public:
  static Result<std::unique_ptr<Contender>> start(std::string name, const Process& process);
  ~Contender();
  Contender(const Contender&) = delete;

  const std::string& name() const { return name_; }
  std::span<std::byte> memory() const { return memory_.bytes(); }

  struct Opened {
    std::string kernel, identity;
    uint64_t resident_before = 0;  ///< bytes of its process, before the kernel was loaded
    double seconds = 0;            ///< that opening it took, with what it compiles then
    double compile_seconds = 0;    ///< of these: those of compiling it, as the kernel says
    std::string device;            ///< whose memory it computes in, if that is not the host's
  };
  /// Errors: unsupported where it refuses the call; so may `run`.
  Result<Opened> open(const conformance::Ask& call);
  /// Lets the process take the memory that the lab itself wants in it; bytes by which it has grown then.
  /// `cold`: that of launches with cold caches, too.
  Result<uint64_t> set_up(bool cold);
  Status place(std::span<const uint64_t> inputs, std::span<const uint64_t> outputs);

  struct Turn {
    uint64_t ticks = 0;        ///< that the launches took, by the process; or, by a device's clock,
    uint64_t nanoseconds = 0;  ///< these
    uint64_t outside = 0;      ///< from the question to the answer, by the lab
    double cpu = 0;            ///< seconds of processor time that the process used
    /// Steps a nanosecond of a chain of operations after the launches: the clock of the processor in GHz; of
    /// a device, that by the cycles of a multiply-add. 0: unknown.
    double clock = 0;
    uint64_t device_bytes = 0;       ///< of the device's memory that it has taken since it was set up
    double seconds() const;          ///< of the launches
    double seconds_outside() const;  ///< of the question
  };
  /// Launches, each after its edits, which lie in the memory.
  struct Launches {
    uint64_t count = 1;
    uint64_t edits_at = 0;
    uint64_t edits_each = 1;
    bool apart = false;  ///< each is counted alone, without its edits
    bool cold = false;   ///< so too, and the caches are flushed before
  };
  Result<Turn> run(const Launches& launches);
  /// Lets the process go on for so long with nothing to do; how many of its threads want a processor then.
  int idle(double seconds);

  /// Files that it left in its folder, which was empty when it started; empty: none.
  std::string files_left() const;
  /// The last that it printed.
  std::string printed() const;
  int pid() const { return pid_; }

 private:
  Contender(std::string name, const Process& process, SharedMemory memory);
  Status spawn();
  /// Errors: unsupported where the kernel refuses; device where the process ended, hung, printed too much, or
  /// did not answer as agreed.
  /// The answer has the number of the request, which is drawn: no other one is taken for it.
  Result<nlohmann::json> ask(nlohmann::json request, uint64_t* outside = nullptr);
  Result<std::string> receive(double seconds);
  Status take_output();
  Status ended();
  void end_processes();
  double cpu_seconds() const;

  std::string name_;
  Process process_;
  SharedMemory memory_;
  std::string folder_;
  int pid_ = -1, group_ = -1, socket_ = -1, output_ = -1;
  uint64_t drawn_from_, asked_ = 0;  // numbers of requests
  uint64_t printed_bytes_ = 0;
  std::string printed_;
};

}  // namespace weft::lab
