#include "lab/tune.h"

#include "cli/command.h"
#include "cli/program/backend.h"
#include "cli/program/inputs.h"
#include "cli/show.h"
#include "cli/text/screen.h"
#include "compiler/compile.h"
#include "weft/policy_scope.h"

// weft tune: finds the fastest kernel for each call of a program on this machine.
namespace weft::cli {
namespace {

struct Options {
  std::string program;
  ProgramInputs inputs;
  lab::TuneOptions tune;
  bool dry_run = false;
};

Json to_json(const lab::TunedCall& t) {
  Json kernels = Json::list();
  for (const auto& k : t.kernels)
    kernels.push_back({{"kernel", k.kernel},
                       {"nanoseconds", k.nanoseconds},
                       {"quartiles", {k.quarter, k.three_quarters}},
                       {"samples", k.samples},
                       {"wrong", k.wrong}});
  Json out{{"call", t.call},     {"what", t.what},        {"count", t.count},
           {"kernels", kernels}, {"judged_by", t.judged}, {"left_out", t.left_out}};
  if (t.left_out.empty()) out.set("fastest", t.kernels[t.fastest].kernel), out.set("gain", t.gain());
  return out;
}

std::string microseconds(uint64_t ns) { return fmt::format("{:.1f} us", static_cast<double>(ns) / 1000); }

std::string in_words(const lab::TunedCall& t) {
  std::string s = t.what + "\n";
  if (t.left_out.empty()) s += fmt::format("    checked by {}\n", t.judged);
  for (size_t i = 0; i < t.kernels.size(); ++i) {
    const auto& k = t.kernels[i];
    if (!k.wrong.empty())
      s += fmt::format("  ! {:<34} wrong: {}\n", k.kernel, k.wrong);
    else
      s += fmt::format("  {} {:<34} {:>12}  ({} to {}, {} samples){}\n", i == t.fastest ? '*' : ' ', k.kernel,
                       microseconds(k.nanoseconds), microseconds(k.quarter), microseconds(k.three_quarters),
                       k.samples, i == 0 ? ", taken without measurements" : "");
  }
  if (!t.left_out.empty()) s += "    left out: " + t.left_out + "\n";
  s.pop_back();
  return s;
}

int run(const Options& o, const Common& common) {
  const auto p = value_or_raise(compiler::read_file(o.program));
  check_computes();
  const auto inputs = value_or_raise(inputs_of(p, o.inputs));
  auto options = o.tune;
  options.keep = !o.dry_run;
  LiveLine live(!common.json);
  const auto see = [&](const lab::TunedCall& t, size_t done, size_t of) {
    live.clear();
    if (!common.json) fmt::print("{}\n", in_words(t)), std::fflush(stdout);
    live.show(fmt::format("{} of {}", done, counted(of, "call")));
  };
  const auto found = value_or_raise(lab::tune(p, inputs, common.backend, current_policy(), options, see));
  live.clear();
  size_t better = 0, wrong = 0;
  Json calls = Json::list();
  for (const auto& t : found.calls) {
    calls.push_back(to_json(t));
    better += t.left_out.empty() && t.fastest > 0;
    for (const auto& k : t.kernels) wrong += !k.wrong.empty();
  }
  std::string end = fmt::format(
      "{} that differ; for {} of them another kernel is faster than the one taken without measurements",
      counted(found.calls.size(), "call"), grouped(static_cast<int64_t>(better)));
  end += found.kept ? fmt::format("\n{} kept in {}", counted(found.kept, "measurement"), found.file)
                    : std::string("\nnothing was kept");
  Show(common.json)
      .result({{"program", p.name},
               {"backend", default_backend()},
               {"sizes", sizes_json(p, inputs)},
               {"calls", calls},
               {"kept", found.kept},
               {"file", found.file}},
              end);
  return wrong ? 1 : 0;
}

}  // namespace

extern const Command tune_command = {
    "tune", "find the fastest kernel for each call of a program",
    [](Syntax& app, const Common& common) -> std::function<int()> {
      const auto o = std::make_shared<Options>();
      add_program_option(app, o->program);
      add_input_options(app, o->inputs);
      app.add_option("--seconds", o->tune.seconds, "seconds of launches for one call")
          .check(positive)
          .capture_default_str();
      app.add_option(
             "--oracle-seconds", o->tune.oracle_seconds,
             "how long working out the right answer of a call may take, about; larger calls are checked "
             "on whole numbers")
          .check(positive)
          .capture_default_str();
      app.add_flag("--dry-run", o->dry_run, "measure, and keep nothing");
      app.footer(
          "What is kept holds for this machine, backend, number of threads and these kernels, for programs, "
          "sessions and single ops alike. WEFT_CACHE_DIR names another folder; WEFT_MEASURED=0 ignores it. "
          "Exits with 1 if a kernel gives a wrong result.");
      return [o, &common] { return run(*o, common); };
    }};

}  // namespace weft::cli
