#include <sys/prctl.h>

#include <cmath>
#include <filesystem>

#include "cli/command.h"
#include "cli/show.h"
#include "cli/text/screen.h"
#include "lab/kernels/call_json.h"
#include "lab/kernels/contest.h"
#include "lab/kernels/provider.h"
#include "lab/kernels/worker.h"
#include "weft/backends.h"

// weft lab: compares kernels of one operation: which is right, which is faster, and how sure that is.
namespace weft::cli {
namespace {

struct Options {
  std::vector<std::string> contenders;
  lab::Choice choice;
  lab::ContestOptions contest;
  bool worker = false;
};

Json to_json(const lab::WorstElement& w) {
  Json operands = Json::list();
  for (const auto& o : w.operands)
    operands.push_back({{"operand", o.operand}, {"at", o.at}, {"values", o.values}});
  return {{"result", w.result}, {"at", w.at},       {"got", w.got},
          {"want", w.want},     {"bound", w.bound}, {"operands", operands}};
}

Json to_json(const lab::Accuracy& a) {
  return {{"elements", a.elements},
          {"max_abs", a.max_abs},
          {"max_rel", a.max_rel},
          {"l2", a.l2},
          {"share_of_bound", a.share_of_bound},
          {"ulps", a.ulps},
          {"nans", a.nans},
          {"infinities", a.infinities},
          {"worst", to_json(a.worst)}};
}

Json to_json(const lab::Row& r, const lab::Work& work) {
  const double median = lab::quantile(r.nanoseconds, 0.5);
  Json out{{"contender", r.contender},
           {"kernel", r.kernel},
           {"identity", r.identity},
           {"verdict", lab::name(r.verdict)},
           {"why", r.why},
           {"cases", r.cases},
           {"refused", r.refused},
           {"accuracy", to_json(r.accuracy)},
           {"compile_seconds", r.compile_seconds},
           {"open_seconds", r.open_seconds},
           {"peak_bytes", r.peak_bytes},
           {"turns", r.nanoseconds.size()}};
  if (r.nanoseconds.empty()) return out;
  out.set("nanoseconds", {{"median", median},
                          {"p10", lab::quantile(r.nanoseconds, 0.1)},
                          {"p90", lab::quantile(r.nanoseconds, 0.9)}});
  out.set("cpu_nanoseconds", r.cpu_nanoseconds);
  out.set("gigabytes_per_second", work.bytes / median), out.set("gigaflops", work.flops / median);
  if (!r.out()) out.set("ratio", {{"low", r.ratio.low}, {"middle", r.ratio.middle}, {"high", r.ratio.high}});
  return out;
}

std::string in_words(const lab::Row& r, const lab::Work& work, bool baseline) {
  const auto name = r.kernel.empty() || r.kernel == r.contender
                        ? r.contender
                        : fmt::format("{} ({})", r.contender, r.kernel);
  if (r.out()) return fmt::format("  {:<44} {:<10} {}", name, lab::name(r.verdict), r.why);
  if (r.nanoseconds.empty()) return fmt::format("  {:<44} not timed", name);
  const double median = lab::quantile(r.nanoseconds, 0.5);
  return fmt::format(
      "  {:<44} {:<10} {:>10.2f} us  {:>7.1f} GB/s {:>7.1f} Gflop/s  {:>5.1f} % of the bound  {}", name,
      baseline ? "baseline" : lab::name(r.verdict), median / 1e3, work.bytes / median, work.flops / median,
      100 * r.accuracy.share_of_bound,
      baseline ? ""
               : fmt::format("{:.3f} times as fast ({:.3f} to {:.3f})", r.ratio.middle, r.ratio.low,
                             r.ratio.high));
}

// The exit status: that of the worst row.
int status_of(const lab::Comparison& c) {
  int worst = 0;
  for (const auto& r : c.rows) {
    constexpr int kStatus[] = {0, 0, 3, 4, 5, 6};  // in the order of Verdict
    worst = std::max(worst, kStatus[static_cast<size_t>(r.verdict)]);
  }
  return worst;
}

// The command line of a contender's process: this program, with the options that decide how kernels run.
std::vector<std::string> worker_command(const Common& common) {
  std::vector<std::string> words = {std::filesystem::read_symlink("/proc/self/exe").string(), "lab",
                                    "--worker", "--threads", std::to_string(common.threads)};
  for (const auto& p : common.plugins)
    words.insert(words.end(), {"--plugin", std::filesystem::absolute(p).string()});
  return words;
}

// What can be compared here, and what can't, with the reason.
int list(const Options& o, const Common& common) {
  Json operations = Json::list(), providers = Json::list();
  std::string words = "operations:\n";
  for (const auto& operation : value_or_raise(lab::operations_of(o.choice))) {
    operations.push_back(operation.label());
    words += "  " + operation.label() + "\n";
  }
  for (const lab::Provider* p : lab::all_providers()) {
    Json offers = Json::list();
    words += fmt::format("{}: {}\n", p->name, p->takes_what);
    for (const auto& offer : p->offers()) {
      offers.push_back({{"contender", offer.contender}, {"reason", offer.reason}});
      words +=
          fmt::format("  {:<16} {}\n", offer.contender, offer.reason.empty() ? "available" : offer.reason);
    }
    providers.push_back({{"provider", p->name}, {"takes", p->takes_what}, {"contenders", offers}});
  }
  words.pop_back();
  Show(common.json).result({{"operations", operations}, {"providers", providers}}, words);
  return 0;
}

// The default backend's choice, then every other that is there.
std::vector<std::string> all_contenders() {
  std::vector<std::string> names = {default_backend()};
  for (const lab::Provider* p : lab::all_providers())
    for (const auto& offer : p->offers())
      if (offer.reason.empty() && offer.contender != names[0]) names.push_back(offer.contender);
  return names;
}

int compare_all(const Options& o, const Common& common) {
  auto options = o.contest;
  options.process.command = worker_command(common);
  ::prctl(PR_SET_DUMPABLE, 0);  // this memory, and the seed in it, is not a kernel's to read
  const auto contenders = o.contenders.empty() ? all_contenders() : o.contenders;
  if (contenders.size() < 2)
    throw UsageError(
        invalid("one contender, {}, has nobody to be compared with; name another", contenders[0]));
  int worst = 0;
  for (const auto& operation : value_or_raise(lab::operations_of(o.choice))) {
    LiveLine live(!common.json);
    const auto label = operation.label();
    const auto c = value_or_raise(lab::compare(
        operation, contenders, options, [&](const std::string& what) { live.show(label + ": " + what); }));
    live.clear();
    Json rows = Json::list();
    std::string words = label;
    for (size_t i = 0; i < c.rows.size(); ++i) {
      rows.push_back(to_json(c.rows[i], c.work));
      words += "\n" + in_words(c.rows[i], c.work, i == 0);
    }
    Show(common.json)
        .result({{"operation", operation.label()},
                 {"processes", c.processes},
                 {"bytes", c.work.bytes},
                 {"flops", c.work.flops},
                 {"rows", rows}},
                words);
    worst = std::max(worst, status_of(c));
  }
  return worst;
}

int run(const Options& o, const Common& common) {
  if (o.worker) return lab::serve_contender();
  if (o.contenders == std::vector<std::string>{"list"}) return list(o, common);
  return compare_all(o, common);
}

}  // namespace

extern const Command lab_command = {
    "lab", "compare kernels: are they right, and which is faster?",
    [](Syntax& app, const Common& common) -> std::function<int()> {
      const auto o = std::make_shared<Options>();
      app.add_option(
             "contenders", o->contenders,
             "kernels to compare, the first with each other one; see weft lab list. Default: every backend")
          .type_name("KERNEL");
      app.add_option("--ops", o->choice.ops, "operations (default: all)").type_name("OP");
      app.add_option("--dtypes", o->choice.dtypes,
                     "element types (default: the first that each operation has)")
          .type_name("DTYPE");
      app.add_option("--shapes", o->choice.shapes, "of one operation, as 1024x1024 or 64x512,512x512")
          .type_name("SHAPE");
      app.add_flag("--sweep", o->choice.sweep, "sizes from small to large in place of those of models");
      app.add_option("--seconds", o->contest.seconds, "of measuring an operation, about")
          .check(positive)
          .capture_default_str();
      app.add_option("--margin", o->contest.margin, "times closer than this share are the SAME")
          .check(positive)
          .capture_default_str();
      app.add_option("--sample", o->contest.sample, "seconds of launches in a turn")
          .check(positive)
          .capture_default_str();
      app.add_option("--timeout", o->contest.process.seconds,
                     "seconds after which a kernel that does not answer hangs")
          .check(positive)
          .capture_default_str();
      app.add_option("--seed", o->contest.seed, "of what is drawn").capture_default_str();
      app.add_flag("--cold", o->contest.cold,
                   "flush the caches before each launch; the flush is not counted");
      app.add_flag("--quick", o->contest.quick, "fewer cases of conformance, fewer processes");
      app.add_flag("--worker", o->worker, "run one kernel for the lab, which starts such processes itself");
      app.footer(
          "Each kernel runs in processes of its own, which take turns; the lab draws operands anew, changes "
          "them before each launch, "
          "and checks the results. Exits with 0 where every kernel is FASTER or the SAME, 3 where one is "
          "SLOWER, 4 UNDECIDED, 5 WRONG, "
          "6 INVALID; the worst counts.");
      return [o, &common] { return run(*o, common); };
    }};

}  // namespace weft::cli
