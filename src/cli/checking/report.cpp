#include "cli/checking/report.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/show.h"

namespace weft::cli {
namespace {

using namespace conformance;

// The number of failures shown for a check: if everything fails, the first few say why.
constexpr size_t kShown = 20;

void print_failure(const CheckRun& run, const CaseResult& r) {
  fmt::print("FAILED  {}/{}\n  {}\n  repeat: {}\n\n", r.check, r.name, r.found.words, run.command(r));
  std::fflush(stdout);
}

void say_more(size_t failed, const char* check) {
  if (failed > kShown) fmt::print("and {} more failed in {}; --json lists all\n\n", failed - kShown, check);
}

/// The progress of a check that reports it, and its failed cases.
struct Reached {
  size_t done = 0, of = 0, failed = 0;
  Clock::time_point start = Clock::now();
};

}  // namespace

void say_each_check(CheckRun& run, LiveLine& live) {
  const auto at = std::make_shared<Reached>();
  run.reached = [at](size_t done, size_t of) { at->done = done, at->of = of; };
  run.progress = [at, &run, &live](const CaseResult& r) {
    if (r.found.state == Found::State::failed && ++at->failed <= kShown) {
      live.clear();
      print_failure(run, r);
    } else if (live.due()) {
      live.show(
          fmt::format("{}/{}   {}", r.check, r.name, time_left(at->done, at->of, seconds_since(at->start))));
    }
  };
  run.ended = [at, &live](const Check& check, const std::array<int64_t, 4>& n) {
    live.clear();
    say_more(at->failed, check.name);
    fmt::print("{:<28} {:>6} passed {:>5} refused {:>4} failed {:>4} left out {:>7.1f} s\n", check.name, n[0],
               n[1], n[2], n[3], seconds_since(at->start));
    std::fflush(stdout);
    *at = {};
  };
}

void print_end(const CheckRun& run, const std::vector<Judged>& failures) {
  // Lines of --expect that matched no case, known after all checks.
  say_more(static_cast<size_t>(std::ranges::count(run.failures(), "expectations", &CaseResult::check)),
           "expectations");
  for (const auto& s : run.skipped()) fmt::print("left out  {}/{}: {}\n", s.check, s.name, s.found.words);
  for (const auto& f : failures) {
    if (!f.alone) continue;
    fmt::print("again     {}/{}: {}\n", f.failure->check, f.failure->name, f.alone->words);
    if (!f.alone->before.empty()) fmt::print("  repeat: {}\n", f.repeat);
  }
  fmt::print("\n{}: {} cases executed, {} refused with a reason, {} failed (--seed {})\n", run.backend(),
             grouped(run.executed()), grouped(run.count(Found::State::refused)), run.failures().size(),
             run.options().seed);
}

Json to_json(const CheckRun& run, const std::vector<Judged>& failures) {
  Json all = Json::list();
  for (const auto& f : failures) {
    Json one{{"case", f.failure->check + "/" + f.failure->name},
             {"words", f.failure->found.words},
             {"repeat", f.repeat}};
    if (f.alone) one.set("again", f.alone->words);
    all.push_back(one);
  }
  Json left_out = Json::list();
  for (const auto& s : run.skipped())
    left_out.push_back({{"case", s.check + "/" + s.name}, {"words", s.found.words}});
  return {{"backend", run.backend()},
          {"seed", run.options().seed},
          {"executed", run.executed()},
          {"passed", run.count(Found::State::passed)},
          {"refused", run.count(Found::State::refused)},
          {"skipped", run.count(Found::State::skipped)},
          {"left_out", left_out},
          {"failures", all}};
}

}  // namespace weft::cli
