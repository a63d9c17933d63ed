#include "cli/command.h"
#include "cli/face/face.h"
#include "cli/files.h"

// weft man: manual pages.
namespace weft::cli {
namespace {

constexpr Release kRelease = {WEFT_RELEASE, WEFT_RELEASE_DATE};

struct Options {
  std::string subcommand, folder;
};

// weft.1, and weft-train.1 and so on for the subcommands.
void write_all(const CommandLine& root, const std::filesystem::path& folder) {
  std::error_code ec;
  std::filesystem::create_directories(folder, ec);
  if (ec) throw Error(fail(Code::io, "can't make the folder {}: {}", folder.string(), ec.message()));
  write_text(folder / (root.name + ".1"), manual(root, root, kRelease));
  for (const auto& c : root.commands)
    write_text(folder / (root.name + "-" + c.name + ".1"), manual(root, c, kRelease));
}

int run(const CommandLine& root, const Options& o) {
  if (!o.folder.empty()) return write_all(root, o.folder), 0;
  const CommandLine* page = &root;
  for (const auto& c : root.commands)
    if (c.name == o.subcommand) page = &c;
  fmt::print("{}", manual(root, *page, kRelease));
  return 0;
}

std::function<int()> setup(Syntax& app, const Common&) {
  const auto o = std::make_shared<Options>();
  std::vector<std::string> names;
  for (const Command& c : all_commands()) names.push_back(c.name);
  auto subcommand = app.add_option("subcommand", o->subcommand, "whose page (default: that of weft itself)")
                        .one_of(std::move(names));
  app.add_option("--out", o->folder,
                 "write all pages into this folder instead, which is made if it is not there")
      .check(some_name)
      .type_name("DIR")
      .excludes(subcommand);
  app.footer("To read one: weft man train | man -l -. `cmake --install` puts them where man looks.");
  return [&app, o] { return run(command_line(app.program()), *o); };
}

}  // namespace

extern const Command man_command = {"man", "print the manual page of weft, or of a subcommand", setup, true};

}  // namespace weft::cli
