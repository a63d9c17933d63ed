#include "conformance/check.h"

#include <random>
#include <set>

#include "cli/checking/alone.h"
#include "cli/checking/devices.h"
#include "cli/checking/last_words.h"
#include "cli/checking/liars.h"
#include "cli/checking/report.h"
#include "cli/command.h"
#include "cli/files.h"
#include "cli/program/backend.h"
#include "cli/show.h"
#include "cli/text/matrix.h"
#include "cli/text/screen.h"
#include "conformance/expectations.h"
#include "formats/file.h"
#include "seam/preference.h"

// weft check: does this backend conform?
namespace weft::cli {
namespace {

using namespace conformance;

struct Options {
  std::string backend, matrix, expectations, keep, cases;
  std::vector<std::string> only, skip;
  CheckOptions check;
  bool liars = false, list = false, drawn_given = false, limit_given = false, seed_given = false;
  int64_t drawn = 10;
  double again = 20, limit = 30;  // seconds
};
constexpr double kLimitInFull = 600;

void print_list(bool as_json, bool of_liars) {
  if (of_liars) return print_liars(as_json);
  for (const Check* check : all_checks())
    Show(as_json).result({{"check", check->name}, {"proves", check->proves}},
                         fmt::format("{:<28} {}", check->name, check->proves));
}

// The command line that repeats these cases on this device, without options that select cases.
std::vector<std::string> arguments_of(const Options& o, const Common& common, const std::string& device) {
  std::vector<std::string> words = {"check", device};
  const auto add = [&](const char* option, const std::string& value) {
    words.insert(words.end(), {option, value});
  };
  for (const auto& path : common.plugins) add("--plugin", path);
  if (!o.expectations.empty()) add("--expect", o.expectations);
  if (common.threads) add("--threads", fmt::format("{}", common.threads));
  if (common.deterministic != Common().deterministic) add("--deterministic", common.deterministic);
  if (common.precision != Common().precision) add("--precision", common.precision);
  if (!o.liars || o.check.seed != CheckOptions().seed) add("--seed", fmt::format("{}", o.check.seed));
  if (o.check.full) words.push_back("--full");
  if (o.limit_given) add("--limit", fmt::format("{}", o.limit));
  if (o.liars) words.push_back("--liars");
  return words;
}
std::string command_of(const std::vector<std::string>& arguments) {
  std::string line = "weft";
  for (const auto& word : arguments) line += " " + shell_word(word);
  return line;
}

// More cases than fit on a line go to a file.
constexpr size_t kMostInALine = 8;

std::string command_with(const std::string& command, std::vector<std::string> cases) {
  std::string line = command;
  if (cases.size() <= kMostInALine) {
    for (const auto& name : cases) line += " --only " + shell_word(name);
    return line;
  }
  static int files = 0;
  const auto path =
      std::filesystem::temp_directory_path() / fmt::format("weft_check_{}_{}.cases", ::getpid(), ++files);
  std::string text;
  for (const auto& name : cases) text += name + "\n";
  write_text(path, text);
  return line + " --only " + shell_word("@" + path.string());
}

// Runs the first failure of each check again, in separate processes: does it fail alone, or what does it
// depend on? Other failures of a check are mostly the same fault.
std::vector<Judged> judged(const Options& o, const CheckRun& run, const std::vector<std::string>& arguments,
                           const std::vector<std::string>& ran) {
  std::vector<Judged> all;
  Again again(arguments, o.again);
  std::set<std::string> seen = {"expectations", "used_by_models"};  // these depend on a whole run
  for (const auto& f : run.failures()) {
    auto& one = all.emplace_back(Judged{&f, {}, run.command(f)});
    const std::string name = f.check + "/" + f.name;
    const auto at = std::ranges::find(ran, name);
    if (o.again <= 0 || at == ran.begin() || at == ran.end() || !seen.insert(f.check).second) continue;
    one.alone = again.ask({ran.begin(), at + 1});
    auto cases = one.alone->before;
    if (cases.empty()) continue;
    cases.push_back(name);
    one.repeat = command_with(command_of(arguments), std::move(cases));
  }
  return all;
}

// A misspelt word selects nothing, without an error where another one does.
void note_unmatched(const CheckRun& run) {
  if (run.options().first_failure && !run.failures().empty()) return;  // the rest was not asked
  for (const auto& [option, words] : {std::pair("--only", run.options().only.unmatched()),
                                      std::pair("--skip", run.options().skip.unmatched())})
    if (!words.empty())
      note(fmt::format(
          "{} {}{} no case; `weft check --list` names the checks", option, shell_word(words.front()),
          words.size() == 1 ? " matches"
                            : fmt::format(" and {} match", counted(words.size() - 1, "other word"))));
}

struct CheckedDevice {
  std::string name;
  std::vector<std::string> arguments;  ///< that ask for it
  bool first = true;                   ///< of its backend
  std::vector<std::string> missing;    ///< devices that could not be opened; with the first
};

bool check_device(const Options& o, const CheckedDevice& device, bool as_json) {
  CheckOptions options = o.check;
  options.repeat = command_of(device.arguments), options.quick = !device.first;
  CheckRun run(device.name, options);
  Expectations known;
  if (!o.expectations.empty())
    known = value_or_raise(Expectations::read(o.expectations)), run.expectations = &known;
  LiveLine live(!as_json);
  if (!as_json) say_each_check(run, live);
  std::vector<CaseResult> found;
  std::vector<std::string> ran;
  std::string executed;
  run.progress = [&, show = run.progress](const CaseResult& r) {
    if (!o.keep.empty() && device.first) found.push_back(r);
    if (r.found.state == Found::State::passed || r.found.state == Found::State::failed)
      executed += r.check + "/" + r.name + "\n";
    ran.push_back(r.check + "/" + r.name);
    if (show) show(r);
  };
  {
    LastWords words(o.limit);
    run.begins = [&](const CaseResult& r) { words.at(run.command(r)); };
    run.run_all();
  }
  live.clear();
  const auto failures = judged(o, run, device.arguments, ran);
  if (as_json) {
    auto report = to_json(run, failures);
    if (!device.missing.empty()) report.set("missing", device.missing);
    fmt::print("{}\n", line_of(report));
  } else {
    print_end(run, failures);
  }
  std::fflush(stdout);
  if (!o.keep.empty() && device.first) write_text(o.keep, expectations_of(found));
  if (!o.cases.empty() && device.first) write_text(o.cases, executed);
  if (!o.matrix.empty() && device.first) write_text(o.matrix, matrix_text(run, o.matrix.ends_with(".json")));
  if (device.first && run.executed() > 0) note_unmatched(run);
  if (run.executed() == 0 && device.first)  // slow checks are skipped for further devices
    throw Error(invalid("no case was executed; `weft check --list` names the checks"));
  return run.failures().empty();
}

// The checks that are skipped for further devices of a backend.
std::string long_checks() {
  std::string names;
  for (const Check* check : all_checks())
    if (check->takes_long) names += (names.empty() ? "" : ", ") + std::string(check->name);
  return names;
}

int check_devices(const Options& o, const Common& common, const AskedDevices& asked) {
  for (const auto& path : {o.keep, o.matrix, o.cases})
    if (!path.empty()) (void)output_path(path);
  bool good = true;
  for (const auto& d : asked.devices) {
    const bool first = &d == &asked.devices.front();
    if (!first && !common.json)
      fmt::print("\n{}: the checks that take long were asked of {} ({}); all of them: weft check {}\n",
                 d.name, asked.devices.front().name, long_checks(), shell_word(d.word));
    good &= check_device(
        o,
        {d.name, arguments_of(o, common, d.word), first, first ? asked.missing : std::vector<std::string>()},
        common.json);
    if (!good && o.check.first_failure) break;
  }
  for (const auto& words : asked.missing)
    if (!common.json) fmt::print("left out  {}\n", words);
  return good ? 0 : 1;
}

// Words that begin with '@' name files, with a word a line.
Beginnings beginnings(const std::vector<std::string>& words) {
  std::vector<std::string> all;
  for (const auto& word : words) {
    if (!word.starts_with("@")) {
      all.push_back(word);
      continue;
    }
    const auto bytes = value_or_raise(formats::read_file(word.substr(1)));
    std::istringstream lines(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    for (std::string line; std::getline(lines, line);) all.push_back(line);
  }
  return Beginnings(std::move(all));
}

int run(Options& o, const Common& common) {
  if (o.list) return print_list(common.json, o.liars), 0;
  if (o.backend.empty())
    throw UsageError(invalid("which backend? `weft backends` lists them; a plug-in's .so is one"));
  o.check.only = beginnings(o.only), o.check.skip = beginnings(o.skip);
  if (o.check.full && !o.limit_given) o.limit = kLimitInFull;
  const auto asked = asked_devices(o.backend);
  const auto& backend = asked.devices.front().name;
  check_computes(backend);
  const seam::Unmeasured alone;  // measurements on this machine are no part of the backend
  // The seed is random in each run, unless given, and except with numbered liars.
  if (!o.seed_given && !o.liars) o.check.seed = 1 + std::random_device()() % 1'000'000;
  o.check.repeat = command_of(arguments_of(o, common, o.backend));
  if (common.policy != "forbid")
    throw UsageError(invalid("what another device answers proves nothing of {}: leave --policy {} out",
                             backend, common.policy));
  if (o.drawn_given && !o.liars)
    throw UsageError(invalid("--drawn says how many --liars are drawn; give both"));
  if (!o.liars) return check_devices(o, common, asked);
  return check_liars(backend, o.check, o.drawn_given ? o.drawn : o.check.full ? 200 : 10, common.json);
}

std::function<int()> setup(Syntax& app, const Common& common) {
  const auto o = std::make_shared<Options>();
  app.add_option("name", o->backend, "the backend: a name, or a plug-in's .so; with :1 its second device")
      .type_name("BACKEND");
  app.add_option("--only", o->only,
                 "run only cases whose CHECK/CASE begins with this; @FILE has one a line; may be repeated")
      .check(some_name)
      .type_name("TEXT")
      .one_at_a_time();
  app.add_option("--skip", o->skip,
                 "leave out cases whose CHECK/CASE begins with this; @FILE has one a line; may be repeated")
      .check(some_name)
      .type_name("TEXT")
      .one_at_a_time();
  app.add_flag("--stop-at-first", o->check.first_failure, "end at the first case that fails");
  app.add_option("--limit", o->limit,
                 "time limit of a case in seconds; a slower one ends the run; 600 with --full")
      .check(positive)
      .capture_default_str();
  app.add_option("--again", o->again,
                 "seconds for running failures alone, and with what ran before them; 0: don't")
      .check(from_zero)
      .capture_default_str();
  app.add_option("--seed", o->check.seed,
                 "seed of the drawn cases; random by default, printed at the end; 1 with --liars")
      .check(whole_number<uint64_t>(0));
  app.add_flag("--liars", o->liars, "check the checks: each faulty wrapper of this backend must be caught");
  app.add_option("--matrix", o->matrix,
                 "write the support matrix: kernels by op and dtype: Markdown, or .json")
      .check(some_name)
      .type_name("FILE")
      .excludes("--liars");
  app.add_option("--expect", o->expectations, "expected refusals and known faults; any difference fails")
      .check(some_name)
      .type_name("FILE")
      .excludes("--liars");
  app.add_option("--keep", o->keep, "write its refusals, as a file for --expect")
      .check(some_name)
      .type_name("FILE")
      .excludes("--liars")
      .excludes("--expect");
  app.add_option("--cases", o->cases,
                 "write the names of the cases that were executed, as --only @FILE reads them")
      .check(some_name)
      .type_name("FILE")
      .excludes("--liars");
  app.add_option("--drawn", o->drawn,
                 "with --liars: how many are drawn besides the named ones; 200 with --full")
      .range(int64_t{0}, int64_t{1'000'000})
      .capture_default_str();
  app.add_flag("--full", o->check.full,
               "run the full suite: 10,000 random graphs, 2^31 elements, up to 33 times as many drawn "
               "sizes, 200 "
               "drawn liars");
  app.add_flag("--list", o->list, "list the checks; with --liars, the liars that have names");
  app.footer("Exits with 1 if a case fails; each failure prints the command that repeats it.");
  return [o, &common, &app] {
    o->drawn_given = app.given("--drawn"), o->limit_given = app.given("--limit");
    o->seed_given = app.given("--seed");
    return run(*o, common);
  };
}

}  // namespace

extern const Command check_command = {"check", "check a backend for conformance: seam, ops, edges, graphs",
                                      setup};

}  // namespace weft::cli
