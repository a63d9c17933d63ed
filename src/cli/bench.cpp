#include "lab/bench.h"

#include "cli/command.h"
#include "cli/program/inputs.h"
#include "cli/show.h"
#include "compiler/compile.h"
#include "runtime/devices.h"
#include "weft/policy_scope.h"

// weft bench: how long a run of a program file takes.
namespace weft::cli {
namespace {

struct Options {
  std::string program;
  ProgramInputs inputs;
  lab::BenchOptions bench;
};

std::string duration(double seconds) {
  return seconds < 1e-3 ? fmt::format("{:.2f} us", seconds * 1e6) : fmt::format("{:.3f} ms", seconds * 1e3);
}

// Runs from and into memory of the host.
Result<lab::BenchResult> measure(runtime::Session& session, std::span<const runtime::HostTensor> inputs,
                                 const lab::BenchOptions& options) {
  WEFT_TRY(auto out, session.run(inputs));
  std::vector<runtime::HostView> in;
  std::vector<std::span<std::byte>> to;
  for (const auto& t : inputs) in.push_back({t.type, t.bytes});
  for (auto& t : out) to.emplace_back(t.bytes);
  return lab::bench([&] { return session.run_into(in, to); }, options);
}

int run(const Options& o, const Common& common) {
  const auto p =
      std::make_shared<const program::CompiledProgram>(value_or_raise(compiler::read_file(o.program)));
  const auto inputs = value_or_raise(inputs_of(*p, o.inputs));
  auto devices = value_or_raise(runtime::devices_for(common.backend, current_policy()));
  const auto session = value_or_raise(runtime::Session::create(p, std::move(devices), current_policy()));
  const auto r = value_or_raise(measure(*session, inputs, o.bench));
  if (!r.steady) note("time was not steady when the warm-up was over; see --warm-up");
  const auto sizes = sizes_text(*p, inputs);
  Show(common.json)
      .result({{"program", p->name},
               {"backend", session->backend()},
               {"sizes", sizes_json(*p, inputs)},
               {"warm_up_runs", r.warm_ups},
               {"steady", r.steady},
               {"runs", r.seconds.size()},
               {"seconds",
                {{"median", r.quantile(0.5)},
                 {"least", r.quantile(0)},
                 {"p10", r.quantile(0.1)},
                 {"p90", r.quantile(0.9)},
                 {"p99", r.quantile(0.99)}}}},
              fmt::format("{} on {}{}{}: median {}, 10 to 90 percent {} to {}, 99 percent {}; {} after {} of "
                          "warm-up",
                          p->name, session->backend(), sizes.empty() ? "" : ", ", sizes,
                          duration(r.quantile(0.5)), duration(r.quantile(0.1)), duration(r.quantile(0.9)),
                          duration(r.quantile(0.99)), counted(r.seconds.size(), "run"), r.warm_ups));
  return 0;
}

}  // namespace

extern const Command bench_command = {
    "bench", "measure how long a run of a program file takes",
    [](Syntax& app, const Common& common) -> std::function<int()> {
      const auto o = std::make_shared<Options>();
      add_program_option(app, o->program);
      add_input_options(app, o->inputs);
      app.add_option("--seconds", o->bench.seconds, "of measured runs; at least 20 runs")
          .check(positive)
          .capture_default_str();
      app.add_option("--warm-up", o->bench.warm_up, "seconds at most until time is steady")
          .check(positive)
          .capture_default_str();
      return [o, &common] { return run(*o, common); };
    }};

}  // namespace weft::cli
