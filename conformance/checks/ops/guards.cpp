#include "conformance/check.h"
#include "conformance/seam/candidates.h"
#include "conformance/seam/guarded.h"

// Every case of every op, by each kernel that accepts it, in guarded memory.
namespace weft::conformance::checks::guards {
namespace {

/// A planned launch, and whether its operands touch the end or the beginning of memory.
struct Job {
  size_t of;  ///< which case
  std::shared_ptr<seam::PreparedKernel> plan;
  bool at_end;
};

struct Guards {
  CheckRun& run;
  Rig rig{run.backend()};
  std::vector<std::string> labels, refusals;
  std::vector<Ask> asks;
  std::vector<Job> jobs;

  void take(const PreparedCase& c) {
    labels.push_back(c.label), asks.push_back(ask_of(c));
    auto candidates = candidates_of(rig, asks.back());
    refusals.push_back(candidates.plans.empty() ? candidates.refusals : "");
    for (auto& one : candidates.plans) {
      const std::shared_ptr<seam::PreparedKernel> plan = std::move(one);
      for (const bool at_end : {true, false})
        if (at_end || rig.device.host_memory()) jobs.push_back({labels.size() - 1, plan, at_end});
    }
  }

  std::vector<std::string> between_pages() {
    return in_children(jobs.size(), [&](size_t i) {
      launch_between_pages(rig, *jobs[i].plan, asks[jobs[i].of], jobs[i].at_end);
    });
  }

  // Child processes run all cases of one op; then each case gets its findings.
  void judge() {
    const bool pages = rig.device.host_memory();
    const auto said = pages ? between_pages() : std::vector<std::string>();
    for (size_t n = 0; n < labels.size(); ++n)
      run.run(labels[n], [&] {
        if (!refusals[n].empty()) return Found::refused(refusals[n]);
        for (size_t i = 0; i < jobs.size(); ++i) {
          if (jobs[i].of != n) continue;
          const auto words = pages ? said[i] : launch_among_others(rig, *jobs[i].plan, asks[n]);
          if (!words.empty())
            return Found::wrong(fmt::format("{}, memory {} each operand watched: {}", jobs[i].plan->kernel.id,
                                            jobs[i].at_end ? "behind" : "before", words));
        }
        return Found();
      });
    labels.clear(), refusals.clear(), asks.clear(), jobs.clear();
  }
};

void run(CheckRun& run) {
  Guards guards{run};
  for (const auto& file : case_files()) {
    if (!run.wants(file.op)) continue;
    each_case(
        op_of(file), file.cases(), [&](const std::string& label) { return run.wants(label); },
        [&](const PreparedCase& c) { guards.take(c); });
    guards.judge();
  }
}

}  // namespace

extern const Check check = {"guards", "no kernel touches what lies beside its operands, in any case", run};

}  // namespace weft::conformance::checks::guards
