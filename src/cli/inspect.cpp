#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/show.h"
#include "program/program.h"

// weft inspect: the contents of a program file.
namespace weft::cli {
namespace {

using program::CompiledProgram;

nlohmann::json ports(const CompiledProgram& p, const std::vector<program::Port>& list) {
  nlohmann::json out = nlohmann::json::array();
  for (const auto& port : list)
    out.push_back({{"name", port.name}, {"type", text(p.values[static_cast<size_t>(port.value)].type)}});
  return out;
}

nlohmann::json to_json(const CompiledProgram& p) {
  nlohmann::json symbols = nlohmann::json::array(), states = nlohmann::json::array(),
                 ops = nlohmann::json::object();
  for (const auto& s : p.symbols) symbols.push_back({{"name", s.name}, {"min", s.min}, {"max", s.max}});
  for (const auto& s : p.states)
    states.push_back({{"name", s.name}, {"type", text(p.values[static_cast<size_t>(s.before)].type)}});
  for (const auto& c : p.calls) {
    const auto name = c.op == "region" ? p.regions[static_cast<size_t>(c.region)].pattern : c.op;
    ops[name] = ops.value(name, 0) + 1;
  }
  uint64_t bytes = 0;
  for (const auto& b : p.blobs) bytes += b.size;
  nlohmann::json origin = nlohmann::json::object();
  for (const auto& [key, value] : p.origin) origin[key] = value;
  nlohmann::json skipped = nlohmann::json::array();
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
          {"origin", origin}};
}

}  // namespace

extern const Command inspect_command = {
    "inspect", "print a program file: inputs, states, calls, regions",
    [](Syntax& app, const Common& common) -> std::function<int()> {
      const auto path = std::make_shared<std::string>();
      app.add_option("program", *path, "the file, as weft compile writes it").required().type_name("FILE");
      return [path, &common] {
        const auto p = value_or_raise(program::read_file(*path));
        fmt::print("{}\n", common.json ? page_of(to_json(p)) : program::print(p));
        return 0;
      };
    }};

}  // namespace weft::cli
