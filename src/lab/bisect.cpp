#include "lab/bisect.h"

#include "conformance/noise.h"
#include "weft/backends.h"

namespace weft::lab {
namespace {

using conformance::Array;
using conformance::Bounded;
using program::CompiledProgram;
using runtime::HostTensor;

class Bisect {
 public:
  Bisect(const CompiledProgram& p, const Config& a, const Config& b, const Policy& policy, Values first)
      : p_(p), a_(a), b_(b), policy_(policy), first_(std::move(first)) {}

  Result<Bisection> run(bool same_bits) {
    // Runs all by a and keeps its values, so trials can begin in the middle.
    by_a_ = first_;
    for (size_t i = 0; i < p_.calls.size(); ++i) {
      WEFT_TRY(auto run, run_call(p_, i, a_, policy_, by_a_));
      keep(p_, i, std::move(run), by_a_);
    }
    ++found_.trials;
    if (same_bits) {
      wanted_bits_ = outputs_of(p_, by_a_);
    } else {
      const OnBackend oracle("reference");  // for ops without operands, too
      WEFT_TRY(const auto whole, whole_graph(p_, first_));
      WEFT_TRY(bounds_, conformance::noise_bound(whole.graph, whole.values));
    }
    found_.a_reason = wrong(by_a_);
    WEFT_TRY(found_.b_reason, trial(0));
    found_.a_right = found_.a_reason.empty(), found_.b_right = found_.b_reason.empty();
    if (found_.a_right != found_.b_right) WEFT_CHECK(search());
    return std::move(found_);
  }

 private:
  // What is wrong with the outputs if calls before k run by a, and the others by b; empty if nothing.
  Result<std::string> trial(size_t k) {
    Values values = first_;
    for (size_t i = 0; i < k; ++i)
      for (const auto id : results_of(p_.calls[i]))
        values[static_cast<size_t>(id)] = by_a_[static_cast<size_t>(id)];
    for (size_t i = k; i < p_.calls.size(); ++i) {
      WEFT_TRY(auto run, run_call(p_, i, b_, policy_, values));
      keep(p_, i, std::move(run), values);
    }
    ++found_.trials;
    return wrong(values);
  }

  std::string wrong(const Values& values) const {
    const auto outputs = outputs_of(p_, values);
    for (size_t k = 0; k < outputs.size(); ++k) {
      const std::string name = k < p_.outputs.size() ? "output " + p_.outputs[k].name
                                                     : "state " + p_.states[k - p_.outputs.size()].name;
      if (bounds_.empty()) {
        if (conformance::encode(outputs[k]) != conformance::encode(wanted_bits_[k]))
          return name + ": other bits";
      } else if (const auto v = conformance::judge(outputs[k], bounds_[k]); !v.ok) {
        return fmt::format("{}: {}", name, v.reason);
      }
    }
    return "";
  }

  // trial(low) and trial(high) differ; in the end high = low + 1, and call `low` makes the difference.
  Status search() {
    size_t low = 0, high = p_.calls.size();
    while (high - low > 1) {
      const size_t middle = low + (high - low) / 2;
      WEFT_TRY(const std::string reason, trial(middle));
      (reason.empty() == found_.b_right ? low : high) = middle;
    }
    // With the values of the calls before it run by a.
    WEFT_TRY(const auto a, run_call(p_, low, a_, policy_, by_a_));
    WEFT_TRY(const auto b, run_call(p_, low, b_, policy_, by_a_));
    WEFT_TRY(const auto bounds, bound_call(p_, low, by_a_));
    found_.culprit = Bisection::Culprit{.call = low,
                                        .what = describe_call(p_, low),
                                        .kind = kind_of(low, a, b),
                                        .a_kernels = a.kernels,
                                        .b_kernels = b.kernels,
                                        .a_verdict = verdict(a, bounds),
                                        .b_verdict = verdict(b, bounds)};
    return {};
  }
  std::string kind_of(size_t call, const CallRun& a, const CallRun& b) const {
    if (a_.backend != b_.backend) return "backend";
    return p_.calls[call].region >= 0 && a.kernels.size() != b.kernels.size() ? "fusion" : "kernel";
  }
  static std::string verdict(const CallRun& run, const std::vector<Bounded>& bounds) {
    for (size_t k = 0; k < bounds.size(); ++k)
      if (const auto v = conformance::judge(to_array(run.results[k]), bounds[k]); !v.ok)
        return fmt::format("result {}: {}", k, v.reason);
    return "within its bound";
  }

  const CompiledProgram& p_;
  const Config &a_, &b_;
  const Policy& policy_;
  const Values first_;
  Values by_a_;
  std::vector<Bounded> bounds_;
  std::vector<Array> wanted_bits_;
  Bisection found_;
};

}  // namespace

Result<Bisection> bisect(const CompiledProgram& program, std::span<const HostTensor> inputs, const Config& a,
                         const Config& b, const Policy& policy, bool same_bits) {
  for (const Config& c : {a, b}) WEFT_CHECK(check_kernels(c));
  WEFT_TRY(const CompiledProgram p, without_symbols(program, inputs));
  if (p.calls.empty()) return invalid("{} has no calls", p.name);
  WEFT_TRY(Values first, first_values(p, inputs));
  return Bisect(p, a, b, policy, std::move(first)).run(same_bits);
}

}  // namespace weft::lab
