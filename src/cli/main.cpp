#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <deque>

#include "base/thread_pool.h"
#include "cli/command.h"
#include "cli/face/face.h"
#include "weft/policy_scope.h"
#include "weft/tensor.h"

namespace weft::cli {
namespace {

void add_common(CLI::App& app, Common& c) {
  std::vector<CLI::Option*> all = {
      app.add_option("--backend", c.backend, "where to run, or a list, best first; see weft backends")
          ->type_name("BACKEND"),
      app.add_option("--policy", c.policy, "may ops fall back to another device?")
          ->check(CLI::IsMember({"forbid", "warn", "allow"}))
          ->capture_default_str(),
      app.add_option("--deterministic", c.deterministic, "least determinism that kernels must guarantee")
          ->check(CLI::IsMember({"any", "run", "batch", "threads", "devices"}))
          ->capture_default_str(),
      app.add_option("--precision", c.precision, "loosest mode in which kernels may compute")
          ->check(CLI::IsMember({"strict", "tf32", "bf16"}))
          ->capture_default_str(),
      app.add_option("--threads", c.threads, "threads to use; 0 = all cores")
          ->check(CLI::Range(0, 1024))
          ->capture_default_str(),
      app.add_option("--plugin", c.plugins, "load a backend from this shared object")->type_name("FILE"),
      app.add_flag("--json", c.json,
                   "print JSON; numbers that are not finite are the texts \"nan\", \"inf\" and \"-inf\""),
      app.set_help_flag("-h,--help", "print this and exit"),
  };
  for (CLI::Option* o : all) o->group("Options of every subcommand");
}

// Applies the common options before the subcommand runs.
Policy configure(const Common& c) {
  set_thread_count(c.threads);
  for (const auto& path : c.plugins) load_backend(path);
  if (!c.backend.empty()) set_default_backend(c.backend);
  Policy policy;
  policy.fallback = c.policy == "allow"  ? Fallback::allow
                    : c.policy == "warn" ? Fallback::warn
                                         : Fallback::forbid;
  constexpr std::string_view kLevels[] = {"any", "run", "batch", "threads", "devices"};
  policy.determinism =
      static_cast<uint8_t>(std::ranges::find(kLevels, c.deterministic) - std::begin(kLevels));
  constexpr std::string_view kModes[] = {"strict", "tf32", "bf16"};  // WEFT_PRECISION_*
  policy.precision = static_cast<uint8_t>(std::ranges::find(kModes, c.precision) - std::begin(kModes));
  return policy;
}

// A limit on file sizes is an error like a full disk. If a mapped file is truncated by another process,
// touching a missing page ends this one: with a message, at least.
void take_file_signals() {
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGBUS, [](int) {
    constexpr char kWords[] = "weft: a file was cut short, or its disk failed, while it was read\n";
    [[maybe_unused]] const auto n = ::write(STDERR_FILENO, kWords, sizeof kWords - 1);
    ::_exit(1);
  });
}

// An invalid command line. CLI11 reports missing arguments first, but an unknown word is the likelier cause.
int usage_error(const CLI::App& app, const CLI::ParseError& e) {
  const auto unknown = app.remaining(true);
  const std::string what =
      unknown.empty() ? e.what() : fmt::format("there is no option or subcommand '{}' here", unknown[0]);
  const auto used = app.get_subcommands();
  fmt::print(stderr, "weft: {}; see weft {}--help\n", what, used.empty() ? "" : used[0]->get_name() + " ");
  return 2;
}

// The subcommand whose options alone are wanted. Making those of all takes milliseconds, which would be a
// part of what loading a small program takes.
const Command* named_command(int argc, char** argv) {
  const auto named = std::ranges::find_if(
      all_commands(), [&](const Command& c) { return argc > 1 && std::string_view(argv[1]) == c.name; });
  return named == all_commands().end() || named->sees_all ? nullptr : &*named;
}

int run(int argc, char** argv) {
  take_file_signals();
  CLI::App app("Weft: write a model once; train, compile and run it on any backend.", "weft");
  app.require_subcommand(1);
  app.formatter_fn([](const CLI::App* a, const std::string& path, CLI::AppFormatMode) {
    return help(command_line(*a), path);
  });
  app.set_help_flag("-h,--help", "print this and exit");
  app.set_version_flag("--version", WEFT_RELEASE, "print the version and exit");
  app.footer("Exit status: 0 success, 1 failure, 2 invalid command line.");
  Common common;
  std::function<int()> action;
  std::deque<Syntax> syntax;  // a deque: actions refer to its elements
  const Command* named = named_command(argc, argv);
  for (const auto& command : all_commands()) {
    CLI::App* sub = app.add_subcommand(command.name, command.help);
    if (named && &command != named) continue;
    auto body = command.setup(syntax.emplace_back(*sub), common);
    add_common(*sub, common);
    sub->callback([&action, body = std::move(body)] { action = body; });
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return e.get_exit_code() == 0 ? app.exit(e) : usage_error(app, e);  // 0: --help and --version
  }
  try {
    const PolicyScope scope(configure(common));
    const int status = action();
    if (std::fflush(stdout) != 0 || std::ferror(stdout))
      throw Error(Status(Code::io, "standard output can't be written"));
    return status;
  } catch (const UsageError& e) {
    std::fprintf(stderr, "weft: %s\n", e.what());
    return 2;
  } catch (const Error& e) {
    std::fprintf(stderr, "weft: %s\n", e.what());
    return 1;
  } catch (const std::bad_alloc&) {
    std::fputs("weft: out of memory: the host has too little for this; smaller sizes want less\n", stderr);
    return 1;
  } catch (const std::exception& e) {  // the file system failed below a layer that returns Status
    std::fprintf(stderr, "weft: %s\n", e.what());
    return 1;
  }
}

}  // namespace
}  // namespace weft::cli

int main(int argc, char** argv) { return weft::cli::run(argc, argv); }
