#include <cmath>

#include "conformance/asks.h"
#include "conformance/check.h"
#include "conformance/numbers.h"
#include "conformance/seam/usual.h"

// Every kernel that accepts += adds: onto zero, onto NaN and onto differing numbers.
namespace weft::conformance::checks::accumulates {
namespace {

// The rounding of the sum and of the added value's own terms: far less than a term.
double allowed(DType t, double before, double added) {
  if (!is_float(t)) return 0;
  const double share = std::max(t == DType::f64 ? 1e-12 : 1e-4, 4 * static_cast<double>(format(t).eps()));
  return share * (1 + std::fabs(before) + std::fabs(added));
}

bool in_range(DType t, double x) {
  return is_float(t) ? std::isfinite(x)
                     : std::fabs(x) < 0x1p50 && x >= static_cast<double>(lowest(t)) &&
                           x <= static_cast<double>(highest(t));
}

std::string wrong_onto(Rig& rig, const weft_kernel& k, Ask ask, const std::vector<HostTensor>& plain) {
  ask.accumulate = 1;
  const auto plan = value_or_raise(rig.plan(value_or_raise(describe(ask)), k));
  const auto all = value_or_raise(rig.launch(*plan, ask)).outputs;
  for (size_t i = 1; i < all.size(); ++i)
    if (plan->plan.determinism >= WEFT_DETERMINISM_RUN && all[i].bytes != plain[i].bytes)
      return fmt::format("{} for {}: output {} is another one where output 0 is added to", k.id, title(ask),
                         i);
  const auto& out = all[0];
  const auto got = numbers(out), added = numbers(plain[0]);
  for (size_t i = 0; i < got.size(); ++i) {
    const double before = ask.before[i % ask.before.size()], want = before + added[i];
    if (before == before && !in_range(out.type.dtype, want)) continue;  // other checks judge it
    const bool right = want != want ? got[i] != got[i]
                                    : std::fabs(got[i] - want) <= allowed(out.type.dtype, before, added[i]);
    if (!right)
      return fmt::format("{} for {}, onto {}: element {} is {}, wanted {}", k.id, title(ask), before, i,
                         got[i], want);
  }
  return "";
}

/// A call that a kernel accepts with +=.
struct Job {
  const weft_kernel& kernel;
  Ask ask;
};

std::vector<Job> jobs_of(Rig& rig, const CaseFile& file) {
  std::vector<Job> jobs;
  for (const Ask& ask : asks_of(op_of(file), file.cases())) {
    Ask adding = ask;
    adding.accumulate = 1;
    const auto call = value_or_raise(describe(adding));
    const auto& desc = call->desc();
    if (!desc.updates.empty() || desc.outputs.empty() || desc.outputs[0].dtype == DType::boolean) continue;
    for (const auto& source : rig.device.sources)
      for (const weft_kernel* k : source.kernels)
        if (ask.op == k->op && rig.plan(call, *k).ok()) jobs.push_back({*k, ask});
  }
  return jobs;
}

Found each_sum(Rig& rig, const std::vector<Job>& jobs) {
  for (const auto& [kernel, ask] : jobs) {
    const auto plain = value_or_raise(rig.plan(value_or_raise(describe(ask)), kernel));
    const auto out = value_or_raise(rig.launch(*plain, ask)).outputs;
    // The last ones differ from element to element: a faulty kernel may read one of them for all.
    for (const auto& before : std::vector<std::vector<double>>{{0}, {std::nan("")}, {5, 3, 8, 0, 2, 7, 1}}) {
      if (before[0] != before[0] && !is_float(out[0].type.dtype)) continue;
      Ask adding = ask;
      adding.before = before;
      if (auto wrong = wrong_onto(rig, kernel, adding, out); !wrong.empty()) return Found::wrong(wrong);
    }
  }
  return {};
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  bool some = false;
  for (const auto& file : case_files()) {
    if (!run.wants(file.op)) continue;
    // A kernel may refuse +=: the host then gives it a temporary.
    const auto jobs = jobs_of(rig, file);
    if (jobs.empty()) continue;
    some = true;
    run.run(file.op, [&] { return each_sum(rig, jobs); });
  }
  if (!some) run.run("every op", [] { return Found::skipped("no kernel takes +="); });
}

}  // namespace

extern const Check check = {"accumulates", "every kernel that takes += adds to what is there, a NaN too",
                            run};

}  // namespace weft::conformance::checks::accumulates
