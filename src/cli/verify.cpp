#include "cli/command.h"
#include "cli/program/backend.h"
#include "cli/program/device_code.h"
#include "cli/program/inputs.h"
#include "cli/show.h"
#include "compiler/compile.h"
#include "lab/vectors.h"
#include "weft/policy_scope.h"

// weft verify: the tests that a program file carries.
namespace weft::cli {
namespace {

std::string sizes_text(const std::vector<Symbol>& sizes) {
  std::string s;
  for (const auto& y : sizes) s += fmt::format("{}{} = {}", s.empty() ? "" : ", ", y.name, y.min);
  return s;
}

// Are all tests of a file right? `many`: it is one of several.
bool verify(const std::string& path, bool many, const std::string& backend, const Common& common) {
  const auto p = value_or_raise(compiler::read_file(path));
  if (p.tests.empty())
    throw Error(invalid("{} carries no tests; `weft compile --tests N` writes them", path));
  for (const auto& s : p.skipped)
    note(fmt::format("section \"{}\" of {} bytes was skipped: {}", s.name, s.size, s.why));
  note_unused_code(p, common.backend);
  bool right = true;
  for (const auto& v : value_or_raise(lab::run_tests(p, common.backend, current_policy()))) {
    right = right && v.wrong.empty();
    Json sizes = Json::object();
    for (const auto& y : v.sizes) sizes.set(y.name, y.min);
    const std::string at = sizes_text(v.sizes);
    Show(common.json)
        .result({{"program", path},
                 {"test", v.test},
                 {"backend", backend},
                 {"sizes", sizes},
                 {"right", v.wrong.empty()},
                 {"worst", v.worst},
                 {"wrong", v.wrong}},
                fmt::format("{}test {}{}{} on {}: {}", many ? path + ": " : "", v.test,
                            at.empty() ? "" : ", ", at, backend,
                            v.wrong.empty() ? fmt::format("right, at most {:.2f} of what is allowed", v.worst)
                                            : "wrong: " + v.wrong));
  }
  return right;
}

int run(const std::vector<std::string>& paths, const Common& common) {
  const std::string backend = common.backend.empty() ? default_backend() : common.backend;
  check_computes(backend);
  size_t wrong = 0;
  for (const auto& path : paths) try {
      wrong += !verify(path, paths.size() > 1, backend, common);
    } catch (const Error& e) {
      if (paths.size() == 1) throw;
      fmt::print(stderr, "{}: {}\n", path, e.what());
      ++wrong;
    }
  if (paths.size() > 1 && !common.json)
    fmt::print("{} programs right, {} wrong\n", paths.size() - wrong, wrong);
  return wrong > 0;
}

}  // namespace

extern const Command verify_command = {
    "verify", "run the tests that program files carry",
    [](Syntax& app, const Common& common) -> std::function<int()> {
      const auto paths = std::make_shared<std::vector<std::string>>();
      app.add_option("program", *paths, "program files").required().type_name("FILE");
      app.footer("Exits with 1 if a number is outside its bound.");
      return [paths, &common] { return run(*paths, common); };
    }};

}  // namespace weft::cli
