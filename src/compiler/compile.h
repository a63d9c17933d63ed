#pragma once
#include <functional>
#include <span>

#include "ir/graph.h"
#include "program/program.h"

// Graph in, program out. The compiler knows no runtime and no backend; it reads weights through WeightSource.
namespace weft::compiler {

/// Bytes of a weight, or the first value of a state, by name. Without one, states start undefined and the
/// runtime must be given their values.
using WeightSource = std::function<Result<program::Blob>(const std::string& name)>;

/// Has the device that is compiled for a kernel of its own for this op? Sizes may be symbols.
using HasKernel = std::function<bool(const ir::OpDef& op, std::span<const TensorType* const> inputs,
                                     std::span<const AttrValue> attrs)>;

struct Options {
  std::string name = "program";
  bool fuse = true;  ///< off: every op stays a call of its own
  /// Bytes of the scores of a language model above which its loss is computed for some rows at a time.
  uint64_t most_scores = uint64_t{1} << 30;
  HasKernel has_kernel = {};  ///< for choices that one device wants, and all others can run; empty: none
};

struct Module;
/// A step of the compiler: module.h has the state that it transforms.
struct Pass {
  const char* name;
  Status (*run)(Module&, const Options&);
};
/// The ordered list of passes; pipeline.cpp explains the order.
std::span<const Pass> pipeline();

/// The state of a compilation between two passes.
struct Stage {
  std::string after;                                          ///< the pass; empty before the first one
  std::function<std::string()> text;                          ///< the graph, and what is fused
  std::function<Result<program::CompiledProgram>()> program;  ///< as if this were the end
};
/// While it lives, compile() on this thread hands over each stage as it is reached. An error ends it.
class Watch {
 public:
  using See = std::function<Status(const Stage&)>;
  explicit Watch(See see);
  ~Watch();
  Watch(const Watch&) = delete;

 private:
  See see_;
  Watch* const outer_;
  friend Status show_stage(std::string after, const Module&, const WeightSource&, const Options&);
};

/// Runs the passes and writes the program. The same graph gives the same bytes.
Result<program::CompiledProgram> compile(const ir::Graph& graph, const WeightSource& weights,
                                         const Options& options = {},
                                         std::span<const Pass> passes = pipeline());

/// Every call of a verified program beside its op's definition: operands, attributes, results of the types
/// that the shape rule gives, updates. A file may say anything, with hashes that fit; kernels trust their
/// calls.
Status check_ops(const program::CompiledProgram& program);
/// Reads a program file from anywhere: program::read_file() and check_ops(). A file may be older than the
/// last attributes and optional operands of its ops: the attributes are added with their defaults.
Result<program::CompiledProgram> read_file(const std::string& path);

}  // namespace weft::compiler
