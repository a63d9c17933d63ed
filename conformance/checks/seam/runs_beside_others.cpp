#include <barrier>
#include <thread>

#include "conformance/check.h"
#include "conformance/seam/usual.h"

// Launches from several threads at once. The contract: any thread may use a kernel record or a plan; a queue
// is used by one thread at a time, except that an inline queue takes launches, and nothing else, from
// several. (The host's count of a plan's launches may miss one, which does not matter here.)
namespace weft::conformance::checks::runs_beside_others {
namespace {

constexpr int kThreads = 4, kRounds = 5;

/// The things that the threads share; each level includes those before it.
enum class Shared : uint8_t { kernel, plan, queue };

/// A thread's launch and its result when it runs alone.
struct Work {
  Rig rig;
  Ask ask;
  std::shared_ptr<seam::PreparedKernel> plan;
  std::vector<HostTensor> alone;

  Work(const std::string& backend, Ask a, std::shared_ptr<seam::PreparedKernel> p)
      : rig(backend), ask(std::move(a)), plan(std::move(p)) {
    if (!plan) plan = value_or_raise(rig.plan(value_or_raise(describe(ask))));
    alone = value_or_raise(rig.launch(*plan, ask)).outputs;
  }

  /// What is wrong with a launch that starts when all threads are ready.
  /// `shared` is an inline queue, whose launches are complete when they return; null: a queue of its own.
  std::string launch(std::barrier<>& ready, seam::Queue* shared) {
    auto placed = rig.place(*plan, ask);
    Status status = placed.ok() ? rig.queue->synchronize() : placed.status();
    ready.arrive_and_wait();  // also after an error: the others wait for it
    if (!status.ok()) return status.message();
    status = rig.enqueue(*plan, placed.value(), shared ? *shared : *rig.queue);
    if (const Status later = rig.queue->synchronize(); status.ok()) status = later;
    if (!status.ok()) return status.message();
    const auto got = rig.read(placed.value());
    if (!got.ok()) return got.status().message();
    for (size_t k = 0; k < alone.size(); ++k)
      if (got.value().outputs[k].bytes != alone[k].bytes) return "gives another answer than alone";
    return "";
  }
};

Found beside_others(const std::string& backend, const Ask& ask, Shared shared) {
  std::deque<Work> all;
  for (int i = 0; i < kThreads; ++i) {
    Ask own = ask;
    own.inputs[0] = counting(ask.inputs[0].type.shape, 1 + i, ask.inputs[0].type.dtype);
    all.emplace_back(backend, own, i && shared != Shared::kernel ? all[0].plan : nullptr);
  }
  if (all[0].plan->plan.determinism < WEFT_DETERMINISM_RUN)
    return Found::skipped("its kernel promises no equal bits");
  const Rig common(backend);
  seam::Queue* const queue = shared == Shared::queue ? common.queue.get() : nullptr;
  std::vector<std::string> said(kThreads);
  std::barrier ready(kThreads);
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < kThreads; ++i)
      threads.emplace_back([&, i] {
        for (int round = 0; round < kRounds; ++round)
          if (auto wrong = all[i].launch(ready, queue); said[i].empty()) said[i] = std::move(wrong);
      });
  }
  for (const auto& words : said)
    if (!words.empty())
      return Found::wrong(
          fmt::format("{} on {} threads at once: {}", all[0].plan->kernel.id, kThreads, words));
  return {};
}

// Larger than in other checks, so that launches overlap; and composites, whose kernels use scratch memory.
std::vector<Ask> large_calls() {
  const auto x = counting({64, 96}), row = counting({96}, 2);
  return {{"add", {x, row}},
          {"matmul", {x, counting({96, 64})}},
          {"sum", {x}, {{"axes", Shape{1}}}},
          {"cumsum", {x}, {{"axis", int64_t{1}}}},
          {"sort", {x}},
          {"permute", {x}, {{"axes", Shape{1, 0}}}},
          {"gather", {x, array({200}, {2, 0, 63, 17}, DType::i64)}},
          {"softmax", {x}},
          {"linear", {x, counting({64, 96}, 3)}},
          {"layer_norm", {x, row, row}}};
}

// Each thread with its own shapes: makes plans, runs them and frees them, while the others do the same.
Found plans_at_once(const std::string& backend) {
  std::vector<std::string> said(kThreads);
  std::barrier ready(kThreads);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i)
      threads.emplace_back([&, i] {
        const auto x = counting({3 + i, 5 + 2 * i}), w = counting({5 + 2 * i, 7 + 3 * i});
        for (int round = 0; round < 2 * kRounds; ++round) {
          ready.arrive_and_wait();
          try {
            Rig rig(backend);
            for (const Ask& ask : {Ask{"matmul", {x, w}}, Ask{"sum", {x}, {{"axes", Shape{i % 2}}}},
                                   Ask{"cumsum", {x}, {{"axis", int64_t{i % 2}}}}, Ask{"sort", {x}}})
              if (auto words = differs(rig, ask, "a plan made beside others"); !words.empty())
                said[static_cast<size_t>(i)] = words;
          } catch (const std::exception& e) {
            said[static_cast<size_t>(i)] = e.what();
          }
        }
      });
  }
  for (const auto& words : said)
    if (!words.empty()) return Found::wrong(words);
  return {};
}

void run(CheckRun& run) {
  run.run("plans made at once", [&] { return plans_at_once(run.backend()); });
  const bool ordered = value_or_raise(seam::registry().open(run.backend()))->ordered();
  for (const Ask& ask : large_calls())
    for (const auto& [shared, what] : {std::pair{Shared::kernel, "a plan and a queue each"},
                                       std::pair{Shared::plan, "one plan and a queue each"},
                                       std::pair{Shared::queue, "one plan and one queue"}})
      if (shared != Shared::queue || !ordered)
        run.run(fmt::format("{}, {}", title(ask), what),
                [&] { return beside_others(run.backend(), ask, shared); });
}

}  // namespace

extern const Check check = {"runs_beside_others",
                            "launches from several threads at once give what each gives alone", run};

}  // namespace weft::conformance::checks::runs_beside_others
