#include "conformance/check.h"

#include <algorithm>

#include "cli/checking/last_words.h"
#include "cli/checking/liars.h"
#include "cli/command.h"
#include "cli/files.h"
#include "cli/program/backend.h"
#include "cli/show.h"
#include "cli/text/matrix.h"
#include "cli/text/screen.h"
#include "conformance/drawn/lie.h"
#include "conformance/expectations.h"
#include "weft/backends.h"

// weft check: is this backend what it claims to be?
namespace weft::cli {
namespace {

using namespace conformance;

struct Options {
  std::string backend, matrix, expectations, keep;
  CheckOptions check;
  bool liars = false, list = false, drawn_given = false;
  int64_t drawn = 10;
};

// A name, or a plug-in: then the backend that it brings.
std::string resolved(const std::string& asked) {
  if (!asked.ends_with(".so")) return asked;
  const auto before = get_backends();
  load_backend(asked);
  for (const auto& b : get_backends())
    if (b.origin != "built in" &&
        std::none_of(before.begin(), before.end(), [&](const auto& known) { return known.name == b.name; }))
      return b.name;
  throw Error(fail(Code::unavailable, "{} brought no backend that was not there before", asked));
}

// Those that a check shows by themselves: when everything fails, the first few say why.
constexpr size_t kShown = 20;

void print_failure(const CheckRun& run, const CaseResult& r) {
  fmt::print("FAILED  {}/{}\n  {}\n  repeat: {}\n\n", r.check, r.name, r.found.words, run.command(r));
  std::fflush(stdout);
}

void say_more(size_t failed, const char* check) {
  if (failed > kShown) fmt::print("and {} more failed in {}; --json lists all\n\n", failed - kShown, check);
}
// Lines of --expect that no case was like: they are found when all checks have ended.
size_t left_over(const CheckRun& run) {
  return static_cast<size_t>(std::ranges::count(run.failures(), "expectations", &CaseResult::check));
}

void print_list(bool as_json) {
  for (const Check* check : all_checks())
    Show(as_json).result({{"check", check->name}, {"proves", check->proves}},
                         fmt::format("{:<28} {}", check->name, check->proves));
}

nlohmann::json to_json(const CheckRun& run) {
  nlohmann::json failures = nlohmann::json::array();
  for (const auto& f : run.failures())
    failures.push_back(
        {{"case", f.check + "/" + f.name}, {"words", f.found.words}, {"repeat", run.command(f)}});
  return {{"backend", run.backend()},
          {"executed", run.executed()},
          {"passed", run.count(Found::State::passed)},
          {"refused", run.count(Found::State::refused)},
          {"skipped", run.count(Found::State::skipped)},
          {"failures", failures}};
}

/// How far a check is that says so, and how many of its cases failed.
struct Reached {
  size_t done = 0, of = 0, failed = 0;
  Clock::time_point start = Clock::now();
};

// Each failure as it is found, each check with what came of it as it ends; for who watches, the case that
// runs and how long the check will take.
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

int check_backend(const Options& o, const std::string& backend, bool as_json) {
  for (const auto& path : {o.keep, o.matrix})
    if (!path.empty()) check_writable(path);
  CheckRun run(backend, o.check);
  Expectations known;
  if (!o.expectations.empty())
    known = value_or_raise(Expectations::read(o.expectations)), run.expectations = &known;
  LiveLine live(!as_json);
  if (!as_json) say_each_check(run, live);
  std::vector<CaseResult> found;
  if (!o.keep.empty())
    run.progress = [&found, show = run.progress](const CaseResult& r) {
      found.push_back(r);
      if (show) show(r);
    };
  {
    LastWords words;
    run.begins = [&](const CaseResult& r) { words.at(run.command(r)); };
    run.run_all();
  }
  live.clear();
  if (as_json) {
    fmt::print("{}\n", line_of(to_json(run)));
  } else {
    say_more(left_over(run), "expectations");
    for (const auto& s : run.skipped()) fmt::print("left out  {}/{}: {}\n", s.check, s.name, s.found.words);
    fmt::print("\n{}: {} cases executed, {} refused with a reason, {} failed\n", backend,
               grouped(run.executed()), grouped(run.count(Found::State::refused)), run.failures().size());
  }
  if (!o.keep.empty()) write_text(o.keep, expectations_of(found));
  if (!o.matrix.empty()) write_text(o.matrix, matrix_text(run, o.matrix.ends_with(".json")));
  if (run.executed() == 0) throw Error(invalid("no case was executed; `weft check --list` names the checks"));
  return run.failures().empty() ? 0 : 1;
}

// The command line that gives the same cases the same way.
std::string repeated(const Options& o, const Common& common) {
  std::string line = "weft check " + shell_word(o.backend);
  for (const auto& path : common.plugins) line += " --plugin " + shell_word(path);
  if (!o.expectations.empty()) line += " --expect " + shell_word(o.expectations);
  if (common.threads) line += fmt::format(" --threads {}", common.threads);
  if (common.deterministic != Common().deterministic) line += " --deterministic " + common.deterministic;
  if (o.check.seed != CheckOptions().seed) line += fmt::format(" --seed {}", o.check.seed);
  if (o.check.full) line += " --full";
  return o.liars ? line + " --liars" : line;
}

int run(Options& o, const Common& common) {
  if (o.list) return print_list(common.json), 0;
  if (o.backend.empty())
    throw UsageError(invalid("which backend? `weft backends` lists them; a plug-in's .so is one"));
  const auto backend = resolved(o.backend);
  check_computes(backend);
  o.check.repeat = repeated(o, common);
  if (common.policy != "forbid")
    throw UsageError(invalid("what another device answers proves nothing of {}: leave --policy {} out",
                             backend, common.policy));
  if (o.drawn_given && !o.liars)
    throw UsageError(invalid("--drawn says how many --liars are drawn; give both"));
  if (!o.liars) return check_backend(o, backend, common.json);
  // By chance only where that can be done, unless it was asked for: then the error says why not.
  const int64_t drawn = o.drawn_given ? o.drawn : !can_be_lied_about(backend) ? 0 : o.check.full ? 200 : 10;
  if (drawn > 0 && !can_be_lied_about(backend))
    throw UsageError(
        invalid("liars are drawn about backends whose memory is the host's and whose queue is "
                "inline; {} is none: leave --drawn out",
                backend));
  return check_liars(backend, o.check, drawn, common.json);
}

std::function<int()> setup(Syntax& app, const Common& common) {
  const auto o = std::make_shared<Options>();
  app.add_option("name", o->backend, "the backend: a name, or a plug-in's .so").type_name("BACKEND");
  app.add_option("--only", o->check.only, "cases whose CHECK/CASE begins so").type_name("TEXT");
  app.add_option("--seed", o->check.seed, "of what is drawn")
      .check(whole_number<uint64_t>(0))
      .capture_default_str();
  app.add_flag("--liars", o->liars, "check the checks: each faulty wrapping of this backend must be found");
  app.add_option("--matrix", o->matrix,
                 "write which kernel serves which op in which dtype: Markdown, or .json")
      .check(some_name)
      .type_name("FILE")
      .excludes("--liars");
  app.add_option("--expect", o->expectations,
                 "what is known of it: refusals and known faults; any drift fails")
      .check(some_name)
      .type_name("FILE")
      .excludes("--liars");
  app.add_option("--keep", o->keep, "write what it refuses, as a file for --expect")
      .check(some_name)
      .type_name("FILE")
      .excludes("--liars")
      .excludes("--expect");
  app.add_option("--drawn", o->drawn,
                 "with --liars: how many are drawn besides the named ones; 200 with --full")
      .range(int64_t{0}, int64_t{1'000'000})
      .capture_default_str();
  app.add_flag("--full", o->check.full,
               "the figures of a full run: 10,000 random graphs, 2^31 elements, 200 drawn liars");
  app.add_flag("--list", o->list, "list the checks");
  app.footer("Exits with 1 if a case fails; each failure says the command that repeats it.");
  return [o, &common, &app] {
    o->drawn_given = app.given("--drawn");
    return run(*o, common);
  };
}

}  // namespace

extern const Command check_command = {
    "check", "hold a backend to its contract: seam, ops, edges, graphs; a support matrix", setup};

}  // namespace weft::cli
