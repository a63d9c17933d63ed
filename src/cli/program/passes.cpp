#include "cli/program/passes.h"

#include "cli/show.h"

namespace weft::cli {

// What is wrong with the name of a pass.
static std::string no_pass(const std::string& name) {
  std::string names;
  for (const auto& pass : compiler::pipeline()) {
    if (name == pass.name) return {};
    names += fmt::format("{}{}", names.empty() ? "" : ", ", pass.name);
  }
  return fmt::format("there is no pass '{}'; there are {}", name, names);
}

void add_pass_options(Syntax& app, PassOptions& o) {
  app.add_flag("--print-passes", o.print, "print the compiler's passes in order, and do nothing else");
  app.add_option("--dump-after", o.dump, "print the graph as it is after this pass of --print-passes")
      .check(no_pass)
      .type_name("PASS");
  app.add_flag("--verify-passes", o.verify,
               "run the program before and after each pass, and name the pass that changed a number");
  add_input_options(app, o.inputs);
}

void print_passes(const Common& common) {
  Json names = Json::list();
  std::string lines;
  for (const auto& pass : compiler::pipeline()) {
    names.push_back(pass.name);
    lines += fmt::format("{}{}", lines.empty() ? "" : "\n", pass.name);
  }
  Show(common.json).result({{"passes", names}}, lines);
}

WatchedPasses::WatchedPasses(const PassOptions& o, const Common& common)
    : o_(o),
      common_(common),
      check_([&o](const program::CompiledProgram& p) { return inputs_of(p, o.inputs); }) {
  if (o.verify || !o.dump.empty())
    watch_.emplace([this](const compiler::Stage& stage) { return see(stage); });
}

Status WatchedPasses::see(const compiler::Stage& stage) {
  if (!o_.dump.empty() && stage.after == o_.dump) {
    const std::string text = stage.text();
    if (common_.json)
      fmt::print("{}\n", line_of({{"after", stage.after}, {"graph", text}}));
    else
      fmt::print("{}", text);
  }
  return o_.verify ? check_.see(stage) : Status();
}

int WatchedPasses::report() const {
  for (const auto& s : check_.stages()) {
    const std::string name = s.after.empty() ? "before the passes" : s.after;
    Show(common_.json)
        .result({{"after", s.after}, {"calls", s.calls}, {"right", s.wrong.empty()}, {"wrong", s.wrong}},
                fmt::format("{:<20} {:>5} calls  {}", name, s.calls,
                            s.wrong.empty() ? "right" : "changed a number: " + s.wrong));
  }
  return check_.wrong() ? 1 : 0;
}

}  // namespace weft::cli
