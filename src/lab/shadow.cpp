#include "lab/shadow.h"

#include <cmath>

namespace weft::lab {

using conformance::Array;
using program::CompiledProgram;
using runtime::HostTensor;

// Within one rounding of each other: both are right if the oracle is.
static bool alike(const Array& a, const Array& b) {
  for (size_t i = 0; i < a.v.size(); ++i) {
    if (a.v[i] == b.v[i] || (std::isnan(a.v[i]) && std::isnan(b.v[i]))) continue;
    if (!is_float(a.dtype) || !(std::fabs(a.v[i] - b.v[i]) <= conformance::format(a.dtype).spacing(b.v[i])))
      return false;
  }
  return true;
}

static std::string first_difference(const Array& got, const Array& want) {
  for (size_t i = 0; i < got.v.size(); ++i)
    if (!(got.v[i] == want.v[i]))
      return fmt::format("element {}: {:.9g}, from its calls one by one {:.9g}", i, double(got.v[i]),
                         double(want.v[i]));
  return "the same numbers, other bits";
}

// The call's result that is outside its bound, if any.
static Result<std::optional<ShadowFinding>> judge_call(const CompiledProgram& p, size_t i, const CallRun& run,
                                                       const CallRun& oracle, const Values& values) {
  WEFT_TRY(const auto bounds, bound_call(p, i, values));
  for (size_t k = 0; k < bounds.size(); ++k) {
    const auto verdict = conformance::judge(to_array(run.results[k]), bounds[k]);
    if (verdict.ok) continue;
    const auto theirs = conformance::judge(to_array(oracle.results[k]), bounds[k]);
    return std::optional(ShadowFinding{
        i, describe_call(p, i), run.kernels, fmt::format("result {}: {}", k, verdict.reason),
        theirs.ok ? "the oracle is within the bound" : "the oracle is outside too: " + theirs.reason});
  }
  return std::optional<ShadowFinding>();
}

Result<ShadowReport> shadow(const CompiledProgram& program, std::span<const HostTensor> inputs,
                            const Config& config, const std::string& oracle, const Policy& policy,
                            std::span<const HostTensor> whole_run) {
  WEFT_TRY(const CompiledProgram p, without_symbols(program, inputs));
  WEFT_TRY(Values values, first_values(p, inputs));
  const Config other{.backend = oracle, .fuse = true, .without = {}};
  ShadowReport report;
  for (size_t i = 0; i < p.calls.size(); ++i) {
    WEFT_TRY(auto run, run_call(p, i, config, policy, values));
    WEFT_TRY(const auto shadowed, run_call(p, i, other, policy, values));
    ++report.calls;
    bool same = true;
    for (size_t k = 0; k < run.results.size(); ++k)
      same = same && alike(to_array(run.results[k]), to_array(shadowed.results[k]));
    if (!same) {
      ++report.judged;
      WEFT_TRY(report.first, judge_call(p, i, run, shadowed, values));
      if (report.first) return report;
    }
    keep(p, i, std::move(run), values);
  }
  for (size_t k = 0; k < whole_run.size() && report.whole.empty(); ++k) {
    const Array got = to_array(whole_run[k]),
                want = to_array(values[static_cast<size_t>(p.outputs[k].value)]);
    if (!alike(got, want))
      report.whole = fmt::format("output {}: {}", p.outputs[k].name, first_difference(got, want));
  }
  return report;
}

}  // namespace weft::lab
