#include "conformance/check.h"
#include "conformance/seam/usual.h"

namespace weft::conformance {
namespace {

Found onto(Rig& rig, const Ask& ask) {
  Ask overwrite = ask;
  overwrite.accumulate = 0;
  const auto plain = value_or_raise(Rig("reference").run(overwrite));
  // A kernel may refuse to add: the host then gives it a temporary.
  const auto plan = value_or_raise(rig.plan(value_or_raise(describe(ask))));
  const auto run = value_or_raise(rig.launch(*plan, ask));
  const auto got = numbers(run.outputs[0]), sum = numbers(plain.outputs[0]);
  const double before = ask.before;
  for (size_t i = 0; i < got.size(); ++i)
    if (before != before ? got[i] == got[i] : got[i] != before + sum[i])
      return Found::wrong(
          fmt::format("{} onto {}: got {}, expected {}", ask.op, before, got[i], before + sum[i]));
  return {};
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  const auto a = counting({4, 4}), b = counting({4, 4}, 3);
  for (const char* op : {"add", "matmul"})
    for (const double before : {0.0, 5.0, std::numeric_limits<double>::quiet_NaN()})
      run.run(fmt::format("{} onto {}", op, before),
              [&] { return onto(rig, {.op = op, .inputs = {a, b}, .accumulate = 1, .before = before}); });
  run.run("no accumulation where none is asked", [&] {
    return Found::wrong(differs(rig, {.op = "add", .inputs = {a, b}, .before = 5}, "overwriting"));
  });
}

}  // namespace

extern const Check adds_where_asked_check = {
    "adds_where_asked", "where += is asked, a kernel adds to what is there, or says that it can not", run};

}  // namespace weft::conformance
