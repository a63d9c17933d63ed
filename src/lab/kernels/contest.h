#pragma once
#include <functional>

#include "lab/kernels/seat.h"
#include "lab/kernels/statistics.h"

// Kernels against each other on one operation: first whether they are right, then how long they take, by
// turns.
namespace weft::lab {

struct ContestOptions {
  Process process;  ///< of a contender; memory_bytes is filled in
  double seconds =
      30;  ///< of measuring an operation, about; verdicts that are not sure by then stay UNDECIDED
  /// Of each kernel; 0: as many as there are processors. Where they are fewer, the processes of all kernels
  /// run on the same processors, drawn for each of their generations: one may have a busy neighbor.
  int threads = 0;
  double margin = 0.015;        ///< times closer than this are the SAME
  double confidence = 0.99;     ///< of intervals
  double sample = 2e-3;         ///< seconds of launches in a turn
  double oracle_seconds = 0.5;  ///< of working out the truth for one check, about
  bool cold = false;            ///< caches are flushed before each launch, which is not counted
  bool quick = false;           ///< fewer cases of conformance and fewer processes
  uint64_t seed = 1;
};

/// What is known of one contender.
struct Row {
  std::string contender, kernel, identity;
  std::string prepared;  ///< the name that its processes open
  Process process;       ///< how they are started
  Verdict verdict =
      Verdict::undecided;           ///< of the baseline, the first row: SAME, unless it is WRONG or INVALID
  std::string why;                  ///< of WRONG and INVALID
  size_t cases = 0, refused = 0;    ///< of conformance that it was asked, and that it refused
  Accuracy accuracy;                ///< at the operation's size
  std::vector<double> nanoseconds;  ///< of a launch, by turn
  bool on_host = true;              ///< timed by the processor's counter, not by the clock of a device
  std::string device;               ///< whose memory it computes in; empty: the host's
  std::vector<double> clock;        ///< after each turn, as Contender::Turn has it
  double cpu_nanoseconds = 0;       ///< of all threads, a launch
  double compile_seconds = 0;       ///< of making what its processes open; 0 where nothing is compiled
  double open_seconds = 0;          ///< of opening it in its last process, with what it compiles then
  /// Of its process, beyond what that held before the kernel was loaded and beside operands and results; the
  /// most of all processes. With the code of its libraries.
  uint64_t peak_bytes = 0;
  uint64_t device_peak_bytes =
      0;           ///< of its device's memory, after it was opened, beside operands and results
  Interval ratio;  ///< the baseline's time by its own: above 1 it is faster
  std::vector<double> process_ratios;  ///< the same, of each process
  bool out() const { return verdict == Verdict::wrong || verdict == Verdict::invalid; }
};

/// That the clock fell while it was timed, if it did: "; the clock fell to 0.91 in a tenth of the turns".
std::string clock_in_words(const Row& row);

struct Comparison {
  Operation operation;
  Work work;
  size_t processes = 0;  ///< of each contender that was timed
  std::vector<Row> rows;
};

/// A seed that no kernel can know.
uint64_t drawn_seed();

/// Compares contenders with the first of them. `see` is told what is done now. What a kernel does wrong is
/// its row's; errors are the lab's own.
Result<Comparison> compare(const Operation& operation, const std::vector<std::string>& contenders,
                           const ContestOptions& options, const std::function<void(const std::string&)>& see);

}  // namespace weft::lab
