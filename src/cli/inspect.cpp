
#include <map>

#include "cli/command.h"
#include "cli/files.h"
#include "cli/page/page.h"
#include "cli/program/inputs.h"
#include "cli/show.h"
#include "runtime/devices.h"
#include "weft/policy_scope.h"

// weft inspect: the contents of a program file.
namespace weft::cli {
namespace {

using program::CompiledProgram;

struct Options {
  std::string program, html;
  ProgramInputs inputs;
};

Json ports(const CompiledProgram& p, const std::vector<program::Port>& list) {
  Json out = Json::list();
  for (const auto& port : list)
    out.push_back({{"name", port.name}, {"type", text(p.values[static_cast<size_t>(port.value)].type)}});
  return out;
}

Json to_json(const CompiledProgram& p) {
  Json symbols = Json::list(), states = Json::list(), ops = Json::object();
  for (const auto& s : p.symbols) symbols.push_back({{"name", s.name}, {"min", s.min}, {"max", s.max}});
  for (const auto& s : p.states)
    states.push_back({{"name", s.name}, {"type", text(p.values[static_cast<size_t>(s.before)].type)}});
  std::map<std::string, int> times;
  for (const auto& c : p.calls)
    ++times[c.op == "region" ? p.regions[static_cast<size_t>(c.region)].pattern : c.op];
  for (const auto& [name, n] : times) ops.set(name, n);
  uint64_t bytes = 0;
  for (const auto& b : p.blobs) bytes += b.size;
  Json origin = Json::object();
  for (const auto& [key, value] : p.origin) origin.set(key, value);
  Json skipped = Json::list();
  for (const auto& k : p.skipped) skipped.push_back({{"name", k.name}, {"bytes", k.size}, {"why", k.why}});
  return {{"name", p.name},
          {"symbols", symbols},
          {"inputs", ports(p, p.inputs)},
          {"outputs", ports(p, p.outputs)},
          {"states", states},
          {"weights", p.weights.size()},
          {"calls", p.calls.size()},
          {"regions", p.regions.size()},
          {"ops", ops},
          {"blob_bytes", bytes},
          {"tests", p.tests.size()},
          {"skipped", skipped},
          {"weights_file", p.weights_file},
          {"origin", origin}};
}

// A session that is ready to run on these inputs: it has a schedule.
Result<std::unique_ptr<runtime::Session>> ready(const CompiledProgram& p, const std::string& backend,
                                                std::span<const runtime::HostTensor> inputs) {
  WEFT_TRY(auto devices, runtime::devices_for(backend, current_policy()));
  WEFT_TRY(auto session, runtime::Session::create(std::make_shared<const CompiledProgram>(p),
                                                  std::move(devices), current_policy()));
  WEFT_CHECK(session->set_inputs(inputs));
  return session;
}

// A program that runs nowhere here has a page, too: without a plan.
void write_page(const CompiledProgram& p, const Options& o, const std::string& out,
                const std::string& backend) {
  const auto inputs = value_or_raise(inputs_of(p, o.inputs));
  auto session = ready(p, backend, inputs);
  const PageOf page{.program = p,
                    .schedule = session.ok() ? &session.value()->schedule() : nullptr,
                    .no_plan = session.ok() ? "" : session.status().message(),
                    .sizes = sizes_text(p, inputs)};
  write_text(out, graph_page(page));
}

}  // namespace

extern const Command inspect_command = {
    "inspect", "print a program file: inputs, states, calls, regions",
    [](Syntax& app, const Common& common) -> std::function<int()> {
      const auto o = std::make_shared<Options>();
      add_program_option(app, o->program);
      app.add_option(
             "--html", o->html,
             "write a page of the graph: shapes, what is fused, the backend's kernels, memory over time")
          .check(some_name)
          .type_name("FILE");
      add_input_options(app, o->inputs);
      return [o, &common] {
        const std::string page = o->html.empty() ? "" : output_path(o->html);
        refuse_to_overwrite(page, "the program", o->program);
        const auto p = value_or_raise(program::read_file(o->program));
        if (!page.empty()) return write_page(p, *o, page, common.backend), 0;
        fmt::print("{}\n", common.json ? page_of(to_json(p)) : program::print(p));
        return 0;
      };
    }};

}  // namespace weft::cli
