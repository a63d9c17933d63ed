#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weft/policy.h"
#include "weft/trace.h"

namespace weft {

namespace runtime {
class Session;
}
namespace program {
struct CompiledProgram;
}

struct CompileOptions {
  std::string name = "program";
  std::string backend;  ///< empty: the default backend
  Policy policy;
  bool fuse = true;
  /// The program uses the memory of captured weights and states on its device directly, without copies: for
  /// large models. Such tensors can't be updated in place while the program exists; states show its updates.
  bool take_captured = false;
};

/// Elements in the caller's memory, row-major.
struct HostArray {
  DType dtype;
  std::span<const int64_t> sizes;
  std::span<const std::byte> bytes;
};

/// Device memory of a schedule beside states and weights.
struct ArenaUse {
  uint64_t bytes = 0;  ///< of the arena
  uint64_t live = 0;   ///< the peak of live values
};

/// A compiled function: a program, and a session that holds its states.
class Compiled {
 public:
  /// Runs once. Sizes of the inputs give the symbols' values; each new set of values is linked once. Tensors
  /// on the program's device are read where they lie, and outputs are made there: nothing is copied.
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs);
  /// The same without waiting, on devices with asynchronous queues. Later ops on the inputs and outputs are
  /// ordered after the run. wait() reports a failure on the device.
  std::vector<Tensor> enqueue(const std::vector<Tensor>& inputs);
  /// Waits for all enqueued runs.
  void wait();
  /// The same from and into the caller's memory, for loops: with the sizes of the previous run and at most 8
  /// inputs, it allocates nothing.
  ///
  /// An output without memory stays on the device; fetch() copies it.
  ///
  /// Errors   invalid_argument for an output whose memory has another size.
  void run(std::span<const HostArray> inputs, std::span<const std::span<std::byte>> outputs);
  /// Copies an output of the last run() into the caller's memory.
  ///
  /// Errors   invalid_argument before a run, for another number of outputs or another size, and after other
  /// runs.
  void fetch(size_t output, std::span<std::byte> to);
  /// The current value of a state, by name. Captured tensors keep their old values, except those whose memory
  /// the program took (CompileOptions::take_captured).
  Tensor state(const std::string& name) const;
  std::vector<std::string> state_names() const;
  /// True if the program works in this tensor's memory: see CompileOptions::take_captured.
  ///
  /// Errors   invalid_argument for an empty tensor.
  bool shares(const Tensor& t) const;
  /// Writes the program with the current values of its states; load_program() continues from them.
  ///
  /// Errors   io when the file can't be written; an old one is kept then.
  void save(const std::string& path) const;
  /// What save() writes, for tools.
  program::CompiledProgram snapshot() const;
  /// The names and types of what it takes and gives.
  std::vector<InputSpec> inputs() const;
  std::vector<InputSpec> outputs() const;
  std::string text() const;           ///< the program
  std::string schedule_text() const;  ///< kernels, places and reasons, for the sizes of the last run
  ArenaUse arena() const;             ///< memory on its own device, for the sizes of the last run

  explicit Compiled(std::shared_ptr<runtime::Session> session) : session_(std::move(session)) {}

 private:
  std::shared_ptr<runtime::Session> session_;
};

/// Traces `function`, compiles it and opens a session: forward, gradients, updates and random state in one
/// program.
Compiled compile(const TracedFunction& function, const std::vector<InputSpec>& inputs,
                 const CompileOptions& options = {});

/// Opens a session on a program file.
///
/// Errors   unavailable when it can't be read; corrupt, with the section, when it is not whole.
Compiled load_program(const std::string& path, const CompileOptions& options = {});

/// The weights of a program file and the first values of its states, by name, on `backend` (empty: the
/// default backend): what a function of one's own computes with, such as the one that `weft trace` prints.
///
/// Errors   as load_program(); invalid_argument where a weight and a state have one name.
std::map<std::string, Tensor> load_weights(const std::string& path, const std::string& backend = "");

}  // namespace weft
