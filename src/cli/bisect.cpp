#include "lab/bisect.h"

#include <fmt/ranges.h>

#include "cli/command.h"
#include "cli/program/backend.h"
#include "cli/program/inputs.h"
#include "cli/show.h"
#include "compiler/compile.h"
#include "weft/policy_scope.h"

// weft bisect: which choice makes a program differ between two configurations.
namespace weft::cli {
namespace {

struct Options {
  std::string program, a, b;
  ProgramInputs inputs;
  bool same_bits = false;
};

Json to_json(const lab::Bisection& r) {
  Json out{{"a", {{"right", r.a_right}, {"reason", r.a_reason}}},
           {"b", {{"right", r.b_right}, {"reason", r.b_reason}}},
           {"trials", r.trials}};
  if (const auto& c = r.culprit)
    out.set("culprit", {{"call", c->call},
                        {"what", c->what},
                        {"kind", c->kind},
                        {"a", {{"kernels", c->a_kernels}, {"verdict", c->a_verdict}}},
                        {"b", {{"kernels", c->b_kernels}, {"verdict", c->b_verdict}}}});
  return out;
}

std::string in_words(const lab::Bisection& r, const Options& o) {
  const auto side = [](const char* name, const std::string& config, const std::string& reason) {
    return fmt::format("{} {:<24} {}\n", name, config, reason.empty() ? "right" : "wrong: " + reason);
  };
  std::string s = side("a", o.a, r.a_reason) + side("b", o.b, r.b_reason);
  if (!r.culprit)
    return s + (r.a_right ? "the two agree" : "both are wrong: compare each with a third configuration");
  const auto& c = *r.culprit;
  return s + fmt::format("the choice of {} at {}\n  a  {}: {}\n  b  {}: {}\nfound in {} runs", c.kind, c.what,
                         fmt::join(c.a_kernels, ", "), c.a_verdict, fmt::join(c.b_kernels, ", "), c.b_verdict,
                         r.trials);
}

int run(const Options& o, const Common& common) {
  const auto p = value_or_raise(compiler::read_file(o.program));
  const auto a = value_or_raise(lab::parse_config(o.a)), b = value_or_raise(lab::parse_config(o.b));
  for (const auto& c : {a, b}) check_computes(c.backend.empty() ? default_backend() : c.backend);
  const auto inputs = value_or_raise(inputs_of(p, o.inputs));
  const auto found = value_or_raise(lab::bisect(p, inputs, a, b, current_policy(), o.same_bits));
  auto json = to_json(found);
  json.set("sizes", sizes_json(p, inputs));
  const auto sizes = sizes_text(p, inputs);
  Show(common.json).result(json, (sizes.empty() ? "" : sizes + "\n") + in_words(found, o));
  return found.a_right && found.b_right ? 0 : 1;
}

}  // namespace

extern const Command bisect_command = {
    "bisect", "find the kernel or fusion at which two runs of a program differ",
    [](Syntax& app, const Common& common) -> std::function<int()> {
      const auto o = std::make_shared<Options>();
      add_program_option(app, o->program);
      app.add_option("--a", o->a, "one configuration: BACKEND[,unfused][,-KERNEL]...")
          .required()
          .type_name("CONFIG");
      app.add_option("--b", o->b, "the other one").required().type_name("CONFIG");
      add_input_options(app, o->inputs);
      app.add_flag("--same-bits", o->same_bits,
                   "right is what has the bits of a; without, what is within the noise bound of the graph");
      app.footer(
          "As in --a native --b reference, or --a native --b native,unfused, or "
          "--a native --b native,-native.matmul.packed. Exits with 1 unless both are right.");
      return [o, &common] { return run(*o, common); };
    }};

}  // namespace weft::cli
