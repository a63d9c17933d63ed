#include "cli/command.h"
#include "cli/face/face.h"
#include "cli/files.h"

// weft completion: a script for a shell.
namespace weft::cli {
namespace {

struct Options {
  std::string shell, out;
};

int run(const CommandLine& root, const Options& o) {
  const std::string script = o.shell == "bash"  ? bash_completion(root)
                             : o.shell == "zsh" ? zsh_completion(root)
                                                : fish_completion(root);
  if (o.out.empty())
    fmt::print("{}", script);
  else
    write_text(output_path(o.out), script);
  return 0;
}

std::function<int()> setup(Syntax& app, const Common&) {
  const auto o = std::make_shared<Options>();
  app.add_option("shell", o->shell, "bash, zsh or fish")
      .required()
      .type_name("SHELL")
      .one_of({"bash", "zsh", "fish"});
  app.add_option("--out", o->out, "write it to this file instead").check(some_name).type_name("FILE");
  app.footer("In bash: source <(weft completion bash). `cmake --install` puts all three where shells look.");
  return [&app, o] { return run(command_line(app.program()), *o); };
}

}  // namespace

extern const Command completion_command = {"completion", "print a shell completion script", setup, true};

}  // namespace weft::cli
