#include <chrono>
#include <sstream>

#include "base/element.h"
#include "base/output_file.h"
#include "cli/command.h"
#include "cli/files.h"
#include "cli/show.h"
#include "compiler/compile.h"
#include "formats/safetensors.h"
#include "link/resolve_types.h"
#include "runtime/devices.h"
#include "runtime/session.h"
#include "weft/policy_scope.h"

// weft run: a program file on a backend.
namespace weft::cli {
namespace {

using runtime::HostTensor;

struct Options {
  std::string program, inputs, out;
  std::vector<std::string> sizes;  // "batch=4"
  int64_t repeat = 1;
  bool ledger = false, plan = false;
};

Result<Bindings> parse_sizes(const std::vector<std::string>& sizes, const std::vector<Symbol>& symbols) {
  Bindings bindings;
  for (const auto& s : sizes) {
    const size_t eq = s.find('=');
    char* end = nullptr;
    errno = 0;
    const int64_t value = eq == s.npos ? 0 : std::strtoll(s.c_str() + eq + 1, &end, 10);
    if (eq == s.npos || eq == 0 || *end || end == s.c_str() + eq + 1)
      return invalid("--size wants NAME=NUMBER, as in batch=4, got '{}'", s);
    const auto symbol = std::find_if(symbols.begin(), symbols.end(),
                                     [&](const Symbol& k) { return k.name == s.substr(0, eq); });
    if (symbol == symbols.end()) return invalid("--size {}: the program has no symbol of this name", s);
    if (errno == ERANGE || value < symbol->min || value > symbol->max)
      return invalid("--size {}: {} is in {}..{}", s, symbol->name, symbol->min, symbol->max);
    WEFT_CHECK(bindings.bind(symbol->name, value));
  }
  return bindings;
}

Result<HostTensor> from_entry(const formats::Safetensors& file, const std::string& name) {
  const auto* entry = file.find(name);
  if (!entry) return invalid("the inputs file holds no tensor named '{}'", name);
  return HostTensor{{entry->dtype, IntList(entry->shape.begin(), entry->shape.end())},
                    {entry->bytes.begin(), entry->bytes.end()}};
}

// Zeros for integers, which index anything that is not empty; floats run from -1 to 1 in steps that repeat
// nothing soon.
Result<HostTensor> made_up(const program::TensorSpec& spec, const Bindings& sizes) {
  HostTensor t;
  WEFT_TRY(t.type, link::concrete(spec, sizes));
  t.bytes.resize(t.type.bytes());
  if (is_float(t.type.dtype))
    for (int64_t i = 0; i < element_count(t.type.shape); ++i)
      store_element(t.type.dtype, t.bytes.data(), static_cast<size_t>(i),
                    static_cast<double>(i * 7919 % 2003) / 1001.0 - 1.0);
  return t;
}

Result<std::vector<HostTensor>> inputs_of(const program::CompiledProgram& p, const Options& o) {
  WEFT_TRY(const Bindings sizes, parse_sizes(o.sizes, p.symbols));
  std::vector<HostTensor> out;
  formats::Safetensors file;
  if (!o.inputs.empty()) {
    WEFT_TRY(file, formats::read_safetensors(o.inputs));
  }
  for (const auto& port : p.inputs) {
    auto t = o.inputs.empty() ? made_up(p.values[static_cast<size_t>(port.value)], sizes)
                              : from_entry(file, port.name);
    if (!t.ok()) return t.take_status().at(fmt::format("input {}", port.name));
    out.push_back(std::move(t).value());
  }
  return out;
}

nlohmann::json describe(const std::string& name, const HostTensor& t) {
  nlohmann::json first = nlohmann::json::array();
  for (int64_t i = 0; i < std::min<int64_t>(4, element_count(t.type.shape)); ++i)
    first.push_back(load_element<double>(t.type.dtype, t.bytes.data(), static_cast<size_t>(i)));
  return {{"name", name}, {"type", seam::text(t.type)}, {"first", first}};
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

nlohmann::json lines_of(const std::string& text) {
  nlohmann::json lines = nlohmann::json::array();
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

int run(const Options& o, const Common& common) {
  if (!o.out.empty()) {
    refuse_to_overwrite(o.out, "the program", o.program);
    refuse_to_overwrite(o.out, "--inputs", o.inputs);
  }
  auto p = std::make_shared<const program::CompiledProgram>(value_or_raise(compiler::read_file(o.program)));
  auto devices = value_or_raise(runtime::devices_for(common.backend, current_policy()));
  const auto inputs = value_or_raise(inputs_of(*p, o));
  auto session = value_or_raise(runtime::Session::create(p, std::move(devices), current_policy()));
  std::vector<HostTensor> out;
  const auto start = Clock::now();
  for (int64_t i = 0; i < o.repeat; ++i) out = value_or_raise(session->run(inputs));
  const double seconds = seconds_since(start);
  if (!o.out.empty()) {
    raise_if(write_outputs(*p, out, o.out));
    if (is_standard_output(o.out)) return 0;
  }

  nlohmann::json outputs = nlohmann::json::array();
  for (size_t i = 0; i < out.size(); ++i) outputs.push_back(describe(p->outputs[i].name, out[i]));
  if (common.json) {
    nlohmann::json all{{"program", p->name},
                       {"runs", o.repeat},
                       {"seconds", seconds},
                       {"made_up_inputs", o.inputs.empty()},
                       {"outputs", outputs}};
    if (o.plan) all["plan"] = lines_of(link::print(session->plan()));
    if (o.ledger) all["ledger"] = ledger_json(ledger_rows());
    fmt::print("{}\n", all.dump(2));
    return 0;
  }
  if (o.inputs.empty() && !p->inputs.empty())
    fmt::print("inputs are made up; --inputs FILE gives real ones\n");
  for (const auto& t : outputs)
    fmt::print("{:<16} {:<20} {}\n", t["name"].get<std::string>(), t["type"].get<std::string>(),
               t["first"].dump());
  fmt::print("{} runs in {:.3f} s\n", o.repeat, seconds);
  if (o.plan) fmt::print("{}", link::print(session->plan()));
  if (o.ledger) fmt::print("{}", ledger_text());
  return 0;
}

}  // namespace

extern const Command run_command = {
    "run", "run a program file", [](Syntax& app, const Common& common) -> std::function<int()> {
      const auto o = std::make_shared<Options>();
      app.add_option("program", o->program, "the file, as weft compile writes it")
          .required()
          .type_name("FILE");
      app.add_option("--inputs", o->inputs, "safetensors file with the inputs by name; made up without")
          .type_name("FILE");
      app.add_option("--size", o->sizes, "value of a symbol for made-up inputs, as in batch=4")
          .type_name("NAME=N")
          .excludes("--inputs");
      app.add_option("--out", o->out, "write the outputs to this safetensors file")
          .check(some_name)
          .type_name("FILE");
      app.add_option("--repeat", o->repeat, "runs; states go on from one to the next")
          .range(1, 1'000'000'000)
          .capture_default_str();
      app.add_flag("--ledger", o->ledger, "print which kernels ran, and why");
      app.add_flag("--plan", o->plan, "print the resolved plan: steps, kernels, places in memory");
      return [o, &common] { return run(*o, common); };
    }};

}  // namespace weft::cli
