#include <algorithm>

#include "conformance/asks.h"
#include "conformance/check.h"
#include "conformance/prepared.h"
#include "conformance/seam/candidates.h"

// The plans of all cases of an op live at once and run in random order, while some of them end: plans do not
// affect each other.
namespace weft::conformance::checks::plans_stand_alone {
namespace {

struct Job {
  const PreparedCase* of;
  Ask ask;
  std::shared_ptr<seam::PreparedKernel> plan;
};

Found together(Rig& rig, const std::vector<PreparedCase>& cases, uint64_t seed) {
  std::vector<Job> jobs;
  for (const PreparedCase& c : cases) {
    const Ask ask = ask_of(c);
    for (auto& plan : candidates_of(rig, ask).plans) jobs.push_back({&c, ask, std::move(plan)});
  }
  if (jobs.empty()) return Found::refused("no kernel takes any of its calls");
  Random random(seed);
  for (size_t i = jobs.size(); i > 1; --i) std::swap(jobs[i - 1], jobs[random.bits() % i]);
  for (int round = 0; round < 2; ++round) {
    for (const Job& job : jobs) {
      const auto ran = value_or_raise(rig.launch(*job.plan, job.ask));
      if (auto words = judged(*job.of, ran); !words.empty())
        return Found::wrong(fmt::format("{} for {}, one of {} plans that live: {}", job.plan->kernel.id,
                                        job.of->label, jobs.size(), words));
    }
    std::erase_if(jobs, [&](const Job&) { return random.bits() % 2; });  // those plans end
  }
  return {};
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  const bool few = rig.device.capability().dialect[0] && !run.options().full;
  for (const auto& file : case_files()) {
    if (!run.wants(file.op)) continue;
    std::vector<PreparedCase> cases;
    size_t n = 0;
    each_case(
        op_of(file), file.cases(), [&](const std::string&) { return !few || n++ % 16 == 0; },
        [&](const PreparedCase& c) { cases.push_back(c); });
    run.run(file.op, [&] { return together(rig, cases, run.options().seed); });
  }
}

}  // namespace

extern const Check check = {"plans_stand_alone",
                            "plans that live at the same time run as they would alone, in any order", run};

}  // namespace weft::conformance::checks::plans_stand_alone
