#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "seam/call.h"
#include "seam/queue.h"

// Where the lab's kernels come from. Each file src/lab/providers/<name>.cpp defines `const Provider
// <name>_provider`; the build lists the folder.
namespace weft::lab {

/// A kernel that is ready for one call, in the process that runs it.
class Kernel {
 public:
  Kernel() = default;
  virtual ~Kernel() = default;
  Kernel(const Kernel&) = delete;

  virtual std::string id() const = 0;
  /// A hash of its code: what a result was measured of.
  virtual std::string identity() const = 0;
  /// Where the kernel is enqueued, if its device's memory is not the host's; null: it is.
  virtual seam::Queue* queue() { return nullptr; }
  /// From now on the call's operands and results lie here: in the host's memory, or in that of the queue's
  /// device. An operand that is absent has no data. A result that updates an operand lies where that does.
  virtual Status place(std::span<const weft_tensor> inputs, std::span<const weft_tensor> outputs) = 0;
  /// Computes the results once. They are there when this returns, or once the queue has come to this place.
  virtual Status run() = 0;
  /// That were spent on making it, where it is compiled when it is opened.
  virtual double compile_seconds() const { return 0; }
};

/// A contender that could be named on this machine.
struct Offer {
  std::string contender;
  std::string reason;  ///< why it can't be had; empty: it can
};

struct Process;

struct Provider {
  const char* name;
  const char* takes_what;  ///< the contenders that are its own, in words
  bool (*takes)(const std::string& contender);
  /// Makes what its processes open, such as a shared object, in a folder that lives as long as the
  /// comparison; its name. Null: they open the contender by its own. Errors: what a compiler said.
  Result<std::string> (*prepare)(const std::string& contender, const std::string& folder);
  /// In a process of its own. Errors: unsupported, with the reason, where the kernel refuses the call.
  Result<std::unique_ptr<Kernel>> (*open)(const std::string& name, const seam::CallPtr& call);
  /// Contenders that it knows without being told.
  std::vector<Offer> (*offers)();
  /// Changes how its processes are started, whose command is that of this program until then. Null: they are
  /// started so.
  void (*process)(const std::string& name, Process& process) = nullptr;
  /// The device that runs a contender; empty where none is known. Null: the processor.
  std::string (*device)(const std::string& contender) = nullptr;
  /// Compiles for a call what a device's backend then keeps in the host's cache, which processes of kernels
  /// may only read. Runs nothing of it, and its errors are said when a process opens it. Null: nothing is
  /// compiled.
  void (*precompile)(const std::string& name, const seam::CallPtr& call) = nullptr;
};
std::span<const Provider* const> all_providers();

/// Errors: invalid_argument where no provider takes the name; it says what each takes.
Result<const Provider*> provider_of(const std::string& contender);

}  // namespace weft::lab
