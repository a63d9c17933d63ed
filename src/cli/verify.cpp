#include <cmath>

#include "cli/command.h"
#include "cli/program/backend.h"
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

int run(const std::string& path, const Common& common) {
  const std::string backend = common.backend.empty() ? default_backend() : common.backend;
  check_computes(backend);
  const auto p = value_or_raise(compiler::read_file(path));
  if (p.tests.empty())
    throw Error(invalid("{} carries no tests; `weft compile --tests N` writes them", path));
  for (const auto& s : p.skipped)
    note(fmt::format("section \"{}\" of {} bytes was skipped: {}", s.name, s.size, s.why));
  bool right = true;
  for (const auto& v : value_or_raise(lab::run_tests(p, common.backend, current_policy()))) {
    right = right && v.wrong.empty();
    nlohmann::json sizes = nlohmann::json::object();
    for (const auto& y : v.sizes) sizes[y.name] = y.min;
    const std::string at = sizes_text(v.sizes);
    Show(common.json)
        .result({{"test", v.test},
                 {"backend", backend},
                 {"sizes", sizes},
                 {"right", v.wrong.empty()},
                 {"worst", std::isfinite(v.worst) ? nlohmann::json(v.worst) : nlohmann::json(nullptr)},
                 {"wrong", v.wrong}},
                fmt::format("test {}{}{} on {}: {}", v.test, at.empty() ? "" : ", ", at, backend,
                            v.wrong.empty() ? fmt::format("right, at most {:.2f} of what is allowed", v.worst)
                                            : "wrong: " + v.wrong));
  }
  return right ? 0 : 1;
}

}  // namespace

extern const Command verify_command = {"verify", "run the tests that a program file carries",
                                       [](Syntax& app, const Common& common) -> std::function<int()> {
                                         const auto path = std::make_shared<std::string>();
                                         add_program_option(app, *path);
                                         app.footer("Exits with 1 if a number is outside its bound.");
                                         return [path, &common] { return run(*path, common); };
                                       }};

}  // namespace weft::cli
