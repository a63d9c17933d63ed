#include <fmt/ranges.h>

#include <chrono>
#include <optional>
#include <sstream>

#include "base/element.h"
#include "base/output_file.h"
#include "cli/command.h"
#include "cli/files.h"
#include "cli/program/backend.h"
#include "cli/program/device_code.h"
#include "cli/program/inputs.h"
#include "cli/program/tracing.h"
#include "cli/show.h"
#include "compiler/compile.h"
#include "formats/safetensors.h"
#include "lab/shadow.h"
#include "runtime/devices.h"
#include "runtime/session.h"
#include "weft/policy_scope.h"

// weft run: a program file on a backend.
namespace weft::cli {
namespace {

using runtime::HostTensor;

struct Options {
  std::string program, out, shadow, trace;
  ProgramInputs inputs;
  int64_t repeat = 1;
  bool ledger = false, plan = false;
};

std::vector<double> first_numbers(const HostTensor& t) {
  std::vector<double> first;
  for (int64_t i = 0; i < std::min<int64_t>(4, element_count(t.type.shape)); ++i)
    first.push_back(load_element<double>(t.type.dtype, t.bytes.data(), static_cast<size_t>(i)));
  return first;
}

std::string in_words(std::span<const double> numbers) {
  std::vector<std::string> texts;
  for (const double x : numbers) texts.push_back(number_text(x));
  return fmt::format("[{}]", fmt::join(texts, ","));
}

Status write_outputs(const program::CompiledProgram& p, const std::vector<HostTensor>& out,
                     const std::string& path) {
  std::vector<formats::TensorEntry> entries;
  for (size_t i = 0; i < out.size(); ++i)
    entries.push_back({p.outputs[i].name,
                       out[i].type.dtype,
                       {out[i].type.shape.begin(), out[i].type.shape.end()},
                       out[i].bytes});
  return formats::write_safetensors(path, entries, {});
}

Json lines_of(const std::string& text) {
  Json lines = Json::list();
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

Json to_json(const lab::ShadowReport& r) {
  Json out{{"calls", r.calls}, {"judged", r.judged}, {"agrees", r.ok()}, {"whole", r.whole}};
  if (r.first)
    out.set("first", {{"call", r.first->call},
                      {"what", r.first->what},
                      {"kernels", r.first->kernels},
                      {"result", r.first->result},
                      {"oracle", r.first->oracle}});
  return out;
}

void print(const lab::ShadowReport& r, const std::string& oracle) {
  if (r.first) {
    fmt::print("shadow: outside its bound: {}\n  kernels  {}\n  {}\n  {}: {}\n", r.first->what,
               fmt::join(r.first->kernels, ", "), r.first->result, oracle, r.first->oracle);
    return;
  }
  fmt::print("shadow: {} by themselves agree with {}; {} differ by more than a rounding, within the bound\n",
             counted(r.calls, "call"), oracle, r.judged);
  if (!r.whole.empty())
    fmt::print(
        "shadow: the program in one piece says something else: {}\n"
        "  its memory plan is at fault (--plan prints it), or a kernel that is not the same twice\n",
        r.whole);
}

int run(Options& o, const Common& common) {
  if (!o.shadow.empty()) check_computes(o.shadow);
  for (std::string* out : {&o.out, &o.trace}) {
    if (out->empty()) continue;
    *out = output_path(*out);
    refuse_to_overwrite(*out, "the program", o.program);
    refuse_to_overwrite(*out, "--inputs", o.inputs.file);
    if (!o.shadow.empty() && is_standard_output(*out))
      throw UsageError(invalid("--shadow prints what it finds where {} {} writes; name a file",
                               out == &o.out ? "--out" : "--trace", *out));
  }
  Tracing tracing(o.trace);
  auto p = tracing("load", "read the file", [&] {
    return std::make_shared<const program::CompiledProgram>(value_or_raise(compiler::read_file(o.program)));
  });
  auto devices = tracing("load", "open devices", [&] {
    return value_or_raise(runtime::devices_for(common.backend, current_policy()));
  });
  note_unused_code(*p, common.backend);
  const auto inputs = tracing("load", "make inputs", [&] { return value_or_raise(inputs_of(*p, o.inputs)); });
  auto session = tracing("load", "open a session", [&] {
    return value_or_raise(runtime::Session::create(p, std::move(devices), current_policy()));
  });
  session->trace_to(tracing.trace());
  std::vector<HostTensor> out;
  const auto start = Clock::now();
  for (int64_t i = 0; i < o.repeat; ++i)
    out = tracing("run", "run", [&] { return value_or_raise(session->run(inputs)); });
  const double seconds = seconds_since(start);
  tracing.write();
  if (!o.out.empty()) raise_if(write_outputs(*p, out, o.out));
  if (is_standard_output(o.out) || is_standard_output(o.trace)) return 0;

  std::optional<lab::ShadowReport> shadow;
  if (!o.shadow.empty())
    shadow =
        value_or_raise(lab::shadow(*p, inputs, {.backend = common.backend}, o.shadow, current_policy(), out));
  const int status = shadow && !shadow->ok() ? 1 : 0;

  if (common.json) {
    Json outputs = Json::list();
    for (size_t i = 0; i < out.size(); ++i)
      outputs.push_back({{"name", p->outputs[i].name},
                         {"type", seam::text(out[i].type)},
                         {"first", first_numbers(out[i])}});
    Json all{{"program", p->name},
             {"runs", o.repeat},
             {"seconds", seconds},
             {"made_up_inputs", o.inputs.file.empty()},
             {"sizes", sizes_json(*p, inputs)},
             {"outputs", outputs}};
    if (o.plan) all.set("plan", lines_of(link::print(session->schedule())));
    if (o.ledger) all.set("ledger", ledger_json(ledger_rows()));
    if (shadow) all.set("shadow", to_json(*shadow));
    fmt::print("{}\n", page_of(all));
    return status;
  }
  if (o.inputs.file.empty() && !p->inputs.empty())
    fmt::print("inputs are random; --inputs FILE gives real ones\n");
  if (const auto sizes = sizes_text(*p, inputs); !sizes.empty()) fmt::print("{}\n", sizes);
  for (size_t i = 0; i < out.size(); ++i)
    fmt::print("{:<16} {:<20} {}\n", p->outputs[i].name, seam::text(out[i].type),
               in_words(first_numbers(out[i])));
  fmt::print("{} in {:.3f} s\n", counted(o.repeat, "run"), seconds);
  if (o.plan) fmt::print("{}", link::print(session->schedule()));
  if (o.ledger) fmt::print("{}", ledger_text());
  if (shadow) print(*shadow, o.shadow);
  return status;
}

}  // namespace

extern const Command run_command = {
    "run", "run a program file", [](Syntax& app, const Common& common) -> std::function<int()> {
      const auto o = std::make_shared<Options>();
      add_program_option(app, o->program);
      add_input_options(app, o->inputs);
      app.add_option("--out", o->out, "write the outputs to this safetensors file")
          .check(some_name)
          .type_name("FILE");
      app.add_option("--repeat", o->repeat, "runs; states go on from one to the next")
          .range(1, 1'000'000'000)
          .capture_default_str();
      app.add_flag("--ledger", o->ledger, "print which kernels ran, and why");
      app.add_flag("--plan", o->plan, "print the schedule: steps, kernels, places in memory");
      app.add_option(
             "--trace", o->trace,
             "write where the time goes, step by step, to this file; https://ui.perfetto.dev reads it")
          .check(some_name)
          .type_name("FILE");
      app.add_option(
             "--shadow", o->shadow,
             "run every call again on this backend, as in --shadow=reference, and name the first that is "
             "outside its bound")
          .check(some_name)
          .type_name("BACKEND")
          .excludes("--repeat");
      return [o, &common] { return run(*o, common); };
    }};

}  // namespace weft::cli
