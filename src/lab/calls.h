#pragma once
#include "conformance/bounds.h"
#include "runtime/session.h"
#include "weft/policy.h"

// Runs a program call by call, each with its own choice of kernels, with values on the host in between.
namespace weft::lab {

/// How kernels are chosen: one configuration of a program.
struct Config {
  std::string backend;               ///< or a list; empty: the default one
  bool fuse = true;                  ///< off: no kernel runs a body in one piece; what is fused runs op by op
  std::vector<std::string> without;  ///< ids of kernels that are not asked
};
/// Reads "BACKEND[,BACKEND]...[,unfused][,-KERNEL]...", as in "native,-native.matmul.packed".
Result<Config> parse_config(const std::string& text);
/// An error where a kernel that it leaves out could not be taken: it is not of the configuration's backend
/// nor, where others may step in, of any that is here.
Status check_kernels(const Config& c);
std::string text(const Config& config);

/// The program for these sizes: no symbol is left in it.
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
/// Value ids of the results that are there.
std::vector<program::ValueId> results_of(const program::KernelCall& call);
/// Stores the results for later calls.
void keep(const program::CompiledProgram& program, size_t index, CallRun run, Values& values);

/// Call `index` as a concrete call, without the modes of a policy.
Result<seam::CallDesc> describe(const program::CompiledProgram& program, size_t index);
/// What call `index` means, in primitive ops, where it has a body; its operands that are there are the
/// inputs.
Result<ir::Graph> call_graph(const program::CompiledProgram& program, size_t index);

/// Truth and bounds of the results of call `index`, those that are there, for these operands: of its body,
/// where it has one.
Result<std::vector<conformance::Bounded>> bound_call(const program::CompiledProgram& program, size_t index,
                                                     const Values& values);

/// The whole program as a graph of ops, its calls opened up; states' last values are outputs too, after those
/// of the program. `values` in the order that conformance::noise_bound takes them.
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
