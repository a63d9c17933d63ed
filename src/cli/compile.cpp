#include "compiler/compile.h"
#include "base/output_file.h"
#include "cli/command.h"
#include "cli/files.h"
#include "cli/program/device_code.h"
#include "cli/program/passes.h"
#include "cli/program/tests.h"
#include "cli/show.h"
#include "formats/file.h"
#include "import/import.h"
#include "jit/target.h"
#include "program/program.h"
#include "weft/trainer.h"

// weft compile: a checkpoint, or a graph of PyTorch's, as a program file.
namespace weft::cli {
namespace {

struct Options {
  std::string ir, model, out, part = "forward";
  std::vector<std::string> weights, tied;
  bool fuse = true, weights_beside = false;
  PassOptions passes;
  TestOptions tests;
  CodeOptions code;
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

importer::Options import_options(const Options& o) {
  importer::Options options;
  for (const auto& tie : o.tied) {
    const size_t equals = tie.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == tie.size())
      throw UsageError(invalid("--tie wants NAME=OTHER, got '{}'", tie));
    options.tied[tie.substr(0, equals)] = tie.substr(equals + 1);
  }
  return options;
}

// What is imported, with the files' bytes as the program's.
program::CompiledProgram compile_imported(const Options& o) {
  const auto text = value_or_raise(formats::read_file(o.ir));
  const auto model = value_or_raise(
      importer::parse_model_ir({reinterpret_cast<const char*>(text.data()), text.size()}, o.ir));
  std::vector<formats::Safetensors> files;
  for (const auto& path : o.weights) files.push_back(value_or_raise(formats::map_safetensors(path)));
  const auto imported = std::make_shared<importer::Imported>(
      value_or_raise(importer::import_model(model, files, import_options(o))));
  for (const auto& note : imported->notes) fmt::print(stderr, "note: {}\n", note);
  const auto weights = [&](const std::string& name) -> Result<program::Blob> {
    const auto& bytes = imported->weights.at(name).bytes;
    return program::Blob{bytes.data(), bytes.size(), imported};
  };
  return value_or_raise(compiler::compile(
      *imported->graph, weights, {.name = model.name, .fuse = o.fuse, .has_kernel = kernels_of("")}));
}

program::CompiledProgram compile_checkpoint(const Options& o) {
  auto checkpoint = nn::load_checkpoint(o.model);
  return compile_part(checkpoint, o).snapshot();
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
               {"tests", p.tests.size()},
               {"weights_file", p.weights_file}},
              fmt::format("{} in {}: {} bytes, {} calls, {} inputs, {} outputs, {} states, {} tests{}",
                          p.name, o.out, grouped(static_cast<int64_t>(bytes)), p.calls.size(),
                          p.inputs.size(), p.outputs.size(), p.states.size(), p.tests.size(),
                          p.weights_file.empty() ? "" : ", weights in " + p.weights_file));
}

// "model.weights" for "model.weft"; empty where they go into the program.
std::string weights_file(const Options& o) {
  if (!o.weights_beside) return "";
  std::error_code nothing_there;
  const auto status = std::filesystem::status(o.out, nothing_there);
  if (is_standard_output(o.out) || (std::filesystem::exists(status) && !is_regular_file(status)))
    throw UsageError(invalid("--weights-beside wants a file in a folder, got --out {}", o.out));
  return std::filesystem::path(o.out).filename().replace_extension(".weights").string();
}

int run(Options o, const Common& common) {
  if (o.passes.print) return print_passes(common), 0;
  if (o.ir.empty() && o.model.empty()) throw UsageError(invalid("model_ir or --model is required"));
  if (o.out.empty()) throw UsageError(invalid("--out is required"));
  o.out = output_path(o.out);
  if (o.ir.empty())
    refuse_to_overwrite(o.out, "the checkpoint", nn::checkpoint_path(o.model));
  else
    refuse_to_overwrite(o.out, "the graph", o.ir);
  for (const auto& path : o.weights) refuse_to_overwrite(o.out, "--weights", path);
  const auto beside = weights_file(o);
  const WatchedPasses passes(o.passes, common);
  auto program = o.ir.empty() ? compile_checkpoint(o) : compile_imported(o);
  if (const int status = passes.report()) return status;
  add_tests(program, o.tests, o.passes.inputs);
  add_device_code(program, o.code);
  raise_if(program::write_file(program, o.out, beside));
  // Output to a pipe or a device can't be read back.
  if (std::filesystem::is_regular_file(o.out) && !is_standard_output(o.out)) describe(o, common);
  return 0;
}

}  // namespace

extern const Command compile_command = {
    "compile", "write a model, or one that PyTorch exported, as a program file",
    [](Syntax& app, const Common& common) -> std::function<int()> {
      const auto o = std::make_shared<Options>();
      app.add_option("model_ir", o->ir, "an ATen graph, as PyPI's pytorch-ir writes it").type_name("FILE");
      app.add_option("--weights", o->weights, "safetensors with the weights of model_ir; may be given again")
          .one_at_a_time()
          .type_name("FILE");
      app.add_option("--tie", o->tied, "NAME=OTHER: the weight NAME is the one that a file has as OTHER")
          .one_at_a_time()
          .type_name("NAME=OTHER");
      app.add_option("--model", o->model, "folder of the checkpoint").excludes("model_ir").type_name("DIR");
      app.add_option("--out", o->out, "the program file to write").check(some_name).type_name("FILE");
      app.add_option("--part", o->part,
                     "forward, or step: loss, gradients, update and random state in one program")
          .one_of({"forward", "step"})
          .capture_default_str();
      app.add_flag("!--no-fuse", o->fuse, "don't fuse: every op stays a call");
      app.add_flag("--weights-beside", o->weights_beside,
                   "write the weights to a file beside the program: model.weights for model.weft");
      add_pass_options(app, o->passes);
      add_test_options(app, o->tests);
      add_code_options(app, o->code);
      return [o, &common] { return run(*o, common); };
    }};

}  // namespace weft::cli
