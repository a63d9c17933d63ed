#pragma once
#include "conformance/bounds.h"
#include "runtime/session.h"
#include "weft/policy.h"

// Runs a program call by call, each with its own choice of kernels, with values on the host between calls.
namespace weft::lab {

/// One configuration of a program: how kernels are chosen.
struct Config {
  std::string backend;               ///< or a list; empty: the default one
  bool fuse = true;                  ///< off: no kernel runs a body in one piece; what is fused runs op by op
  std::vector<std::string> without;  ///< ids of kernels that are not asked
};
/// Reads "BACKEND[,BACKEND]...[,unfused][,-KERNEL]...", as in "native,-native.matmul.packed".
Result<Config> parse_config(const std::string& text);
/// An error if an excluded kernel could not be chosen anyway: it is not of the configuration's backend nor,
/// if others may step in, of any available one.
Status check_kernels(const Config& c);
std::string text(const Config& config);

/// The program for these sizes, without symbols.
Result<program::CompiledProgram> without_symbols(const program::CompiledProgram& program,
                                                 std::span<const runtime::HostTensor> inputs);

/// The values of a run by id; empty where not computed yet.
using Values = std::vector<runtime::HostTensor>;
/// The values before the first call: inputs, initial states, weights.
Result<Values> first_values(const program::CompiledProgram& program,
                            std::span<const runtime::HostTensor> inputs);

/// The results of one call, and the kernels that ran for it.
struct CallRun {
  std::vector<runtime::HostTensor> results;  ///< those that are there, in order
  std::vector<std::string> kernels;
};
/// Runs call `index` alone, on the values that it reads.
Result<CallRun> run_call(const program::CompiledProgram& program, size_t index, const Config& config,
                         const Policy& policy, const Values& values);
/// Value ids of the results that exist.
std::vector<program::ValueId> results_of(const program::KernelCall& call);
/// Stores the results for later calls.
void keep(const program::CompiledProgram& program, size_t index, CallRun run, Values& values);

/// Operands of call `index` that hold the same bytes in every run: its weights, as far as sessions have them
/// packed. `one_size`: so do all sizes of the program.
std::vector<seam::Constant> constants_of(const program::CompiledProgram& program, size_t index,
                                         bool one_size);

/// Call `index` as a concrete call, without a policy's modes and without constants.
Result<seam::CallDesc> describe(const program::CompiledProgram& program, size_t index);
/// The body of call `index` as a graph of primitive ops, if it has one; its present operands are the inputs.
Result<ir::Graph> call_graph(const program::CompiledProgram& program, size_t index);

/// Truth and bounds of the existing results of call `index` for these operands; by its body, if it has one.
Result<std::vector<conformance::Bounded>> bound_call(const program::CompiledProgram& program, size_t index,
                                                     const Values& values);

/// The whole program as a graph of ops, with calls decomposed; final states are outputs, too, after the
/// program's. `values` are in the order of conformance::noise_bound.
struct WholeGraph {
  ir::Graph graph;
  std::vector<conformance::Array> values;
};
Result<WholeGraph> whole_graph(const program::CompiledProgram& program, const Values& first);
/// The values of those outputs.
std::vector<conformance::Array> outputs_of(const program::CompiledProgram& program, const Values& values);

conformance::Array to_array(const runtime::HostTensor& t);
/// "call 3 matmul (hidden1.matmul): f32[4, 8] = (f32[4, 16], f32[16, 8])".
std::string describe_call(const program::CompiledProgram& program, size_t index);

}  // namespace weft::lab
