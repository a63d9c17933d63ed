#include "base/output_file.h"
#include "cli/command.h"
#include "cli/files.h"
#include "cli/program/passes.h"
#include "cli/program/tests.h"
#include "cli/show.h"
#include "program/program.h"
#include "weft/trainer.h"

// weft compile: a checkpoint as a program file.
namespace weft::cli {
namespace {

struct Options {
  std::string model, out, part = "forward";
  bool fuse = true;
  PassOptions passes;
  TestOptions tests;
};

Compiled compile_part(nn::Checkpoint& run, const Options& o) {
  const Dim batch = Dim::symbol("batch", 1, 65536);
  const CompileOptions options{
      .name = "language_model_" + o.part, .backend = "", .policy = {}, .fuse = o.fuse};
  if (o.part == "forward")
    return compile(
        [&](const std::vector<Tensor>& in) {
          return std::vector<Tensor>{(*run.model)(in[0]).named("logits")};
        },
        {{"tokens", {DType::i32, {batch, run.model->context()}}}}, options);
  nn::set_training(*run.model, true);
  return nn::compile_step(run, batch, options);
}

// Prints the file's own description, which reads it back once.
void describe(const Options& o, const Common& common) {
  const auto p = value_or_raise(program::read_file(o.out));
  const auto bytes = std::filesystem::file_size(o.out);
  Show(common.json)
      .result({{"name", p.name},
               {"file", o.out},
               {"part", o.part},
               {"bytes", bytes},
               {"calls", p.calls.size()},
               {"inputs", p.inputs.size()},
               {"outputs", p.outputs.size()},
               {"states", p.states.size()},
               {"tests", p.tests.size()}},
              fmt::format("{} in {}: {} bytes, {} calls, {} inputs, {} outputs, {} states, {} tests", p.name,
                          o.out, grouped(static_cast<int64_t>(bytes)), p.calls.size(), p.inputs.size(),
                          p.outputs.size(), p.states.size(), p.tests.size()));
}

int run(Options o, const Common& common) {
  if (o.passes.print) return print_passes(common), 0;
  for (const auto& [option, value] : {std::pair("--model", o.model), std::pair("--out", o.out)})
    if (value.empty()) throw UsageError(invalid("{} is required", option));
  o.out = output_path(o.out);
  refuse_to_overwrite(o.out, "the checkpoint", nn::checkpoint_path(o.model));
  auto checkpoint = nn::load_checkpoint(o.model);
  const WatchedPasses passes(o.passes, common);
  const Compiled compiled = compile_part(checkpoint, o);
  if (const int status = passes.report()) return status;
  auto program = compiled.snapshot();
  add_tests(program, o.tests, o.passes.inputs);
  raise_if(program::write_file(program, o.out));
  // Output to a pipe or a device can't be read back.
  if (std::filesystem::is_regular_file(o.out) && !is_standard_output(o.out)) describe(o, common);
  return 0;
}

}  // namespace

extern const Command compile_command = {
    "compile", "write a checkpoint's model or training step as a program file",
    [](Syntax& app, const Common& common) -> std::function<int()> {
      const auto o = std::make_shared<Options>();
      app.add_option("--model", o->model, "folder of the checkpoint").type_name("DIR");
      app.add_option("--out", o->out, "the program file to write").check(some_name).type_name("FILE");
      app.add_option("--part", o->part,
                     "forward, or step: loss, gradients, update and random state in one program")
          .one_of({"forward", "step"})
          .capture_default_str();
      app.add_flag("!--no-fuse", o->fuse, "don't fuse: every op stays a call");
      add_pass_options(app, o->passes);
      add_test_options(app, o->tests);
      return [o, &common] { return run(*o, common); };
    }};

}  // namespace weft::cli
