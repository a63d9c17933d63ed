#include "conformance/seam/levels.h"
#include "conformance/seam/threads.h"

// Kernels that promise it give the same bits with any number of threads.
namespace weft::conformance::checks::any_thread_count {
namespace {

Found one_to_eight(Rig& rig, const Ask& ask) {
  const auto plan = value_or_raise(rig.plan(value_or_raise(describe(ask))));
  if (plan->plan.determinism < WEFT_DETERMINISM_THREADS)
    return Found::skipped(fmt::format("{} promises level {}", plan->kernel.id, plan->plan.determinism));
  Threads threads;
  threads.use(1);
  const auto alone = value_or_raise(rig.launch(*plan, ask));
  for (int n = 2; n <= 8; ++n) {
    threads.use(n);
    const auto many = value_or_raise(rig.launch(*plan, ask));
    for (size_t k = 0; k < alone.outputs.size(); ++k)
      if (alone.outputs[k].bytes != many.outputs[k].bytes)
        return Found::wrong(
            fmt::format("{} by {}: other bits on {} threads than on one", ask.op, plan->kernel.id, n));
  }
  return {};
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  const auto keys = noise({2, 300, 64}, 19);
  const auto x = noise({129, 257}, 1), w = noise({257, 65}, 2), line = noise({100'003}, 3);
  const Ask all[] = {
      {"matmul", {x, w}},
      {"sum", {line}, {{"axes", Shape{0}}}},
      {"sum", {x}, {{"axes", Shape{0}}}},
      {"exp", {line}},
      {"add", {x, noise({257}, 4)}},
      {"cumsum", {line}},
      {"softmax", {x}},
      {"layer_norm", {x, noise({257}, 8), noise({257}, 9)}},
      {"linear", {x, noise({65, 257}, 5)}},
      {"linear", {noise({1, 4096}, 10), noise({256, 4096}, 11)}},
      {"attention", {noise({2, 1, 64}, 12), noise({2, 2048, 64}, 13), noise({2, 2048, 64}, 14)}},
      {"attention_grad",
       {noise({2, 40, 64}, 15), keys, noise({2, 300, 64}, 16), noise({2, 40, 64}, 17),
        array({2, 40}, std::vector<double>(80, 8)), noise({2, 40, 64}, 18)}},
      {"gather", {x, array({40'000}, {3, 128, 0, 77}, DType::i64)}},
      {"scatter_add", {noise({9, 200}, 6), array({400}, {1, 8, 1, 0}, DType::i64), noise({400, 200}, 7)}}};
  for (const Ask& ask : all)
    run_with_level(run, ask, WEFT_DETERMINISM_THREADS, [&](const Ask& it) { return one_to_eight(rig, it); });
}

}  // namespace

extern const Check check = {"any_thread_count",
                            "a kernel that promises it gives the same bits on one thread and on eight", run};

}  // namespace weft::conformance::checks::any_thread_count
