#include "cli/command.h"
#include "cli/files.h"
#include "cli/program/inputs.h"
#include "cli/source/source.h"
#include "compiler/compile.h"

// weft trace: a program file as C++.
namespace weft::cli {

extern const Command trace_command = {
    "trace", "print a program file as C++ that does the same",
    [](Syntax& app, const Common&) -> std::function<int()> {
      struct Options {
        std::string program, out = "-";
      };
      const auto o = std::make_shared<Options>();
      add_program_option(app, o->program);
      app.add_option("--out", o->out, "write the text to this file").check(some_name).type_name("FILE");
      app.footer(
          "The text is a program on the public headers: build it against the installed package, and run it "
          "with "
          "the program file, a safetensors file of inputs, and a name for the outputs.");
      return [o] {
        const std::string out = output_path(o->out);
        refuse_to_overwrite(out, "the program", o->program);
        const auto p = value_or_raise(compiler::read_file(o->program));
        write_text(out, value_or_raise(source::source_text(p, o->program)));
        return 0;
      };
    }};

}  // namespace weft::cli
