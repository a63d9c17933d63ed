#include <cmath>

#include "conformance/check.h"
#include "conformance/seam/usual.h"

namespace weft::conformance::checks::adds_where_asked {
namespace {

Found onto(Rig& rig, const Ask& ask) {
  Ask overwrite = ask;
  overwrite.accumulate = 0;
  const auto plain = value_or_raise(Rig("reference").run(overwrite));
  // A kernel may refuse +=: the host then gives it a temporary.
  const auto plan = value_or_raise(rig.plan(value_or_raise(describe(ask))));
  const auto run = value_or_raise(rig.launch(*plan, ask));
  const auto got = numbers(run.outputs[0]), sum = numbers(plain.outputs[0]);
  for (size_t i = 0; i < got.size(); ++i) {
    const double before = ask.before[i % ask.before.size()], want = before + sum[i];
    if (want != want ? got[i] == got[i] : got[i] != want)
      return Found::wrong(
          fmt::format("{} onto {}: element {} is {}, expected {}", ask.op, before, i, got[i], want));
  }
  return {};
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  const auto a = counting({4, 4}), b = counting({4, 4}, 3);
  const std::pair<const char*, std::vector<double>> all[] = {
      {"0", {0}}, {"5", {5}}, {"nan", {std::nan("")}}, {"numbers that differ", {5, -3, 8, 0, 2, -7, 1}}};
  for (const char* op : {"add", "matmul"})
    for (const auto& [what, before] : all)
      run.run(fmt::format("{} onto {}", op, what),
              [&] { return onto(rig, {.op = op, .inputs = {a, b}, .accumulate = 1, .before = before}); });
  run.run("no accumulation where none is asked", [&] {
    return Found::wrong(differs(rig, {.op = "add", .inputs = {a, b}, .before = {5}}, "overwriting"));
  });
}

}  // namespace

extern const Check check = {
    "adds_where_asked", "where += is asked, a kernel adds to what is there, or says that it can not", run};

}  // namespace weft::conformance::checks::adds_where_asked
