#include <cstdio>

#include "base/thread_pool.h"
#include "cli/command.h"
#include "weft/policy_scope.h"
#include "weft/tensor.h"

namespace weft::cli {
namespace {

void add_common(CLI::App& app, Common& c) {
  app.add_option("--backend", c.backend, "where to run; `weft backends` lists them");
  app.add_option("--policy", c.policy, "may another device step in? forbid, warn or allow")
      ->check(CLI::IsMember({"forbid", "warn", "allow"}));
  app.add_option("--threads", c.threads, "threads to use; 0 = all cores")->check(CLI::Range(0, 1024));
  app.add_option("--plugin", c.plugins, "load a backend from this shared object");
  app.add_flag("--json", c.json, "print JSON");
}

// What the common options mean, before the subcommand runs.
Policy configure(const Common& c) {
  set_thread_count(c.threads);
  for (const auto& path : c.plugins) load_backend(path);
  if (!c.backend.empty()) set_default_backend(c.backend);
  Policy policy;
  policy.fallback = c.policy == "allow"  ? Fallback::allow
                    : c.policy == "warn" ? Fallback::warn
                                         : Fallback::forbid;
  return policy;
}

int run(int argc, char** argv) {
  CLI::App app("Weft: write a model once; train, compile and run it on any backend.", "weft");
  app.require_subcommand(1);
  app.set_version_flag("--version", WEFT_RELEASE);
  Common common;
  std::function<int()> action;
  for (const auto& command : all_commands()) {
    CLI::App* sub = app.add_subcommand(command.name, command.help);
    add_common(*sub, common);
    auto body = command.setup(*sub, common);
    sub->callback([&action, body = std::move(body)] { action = body; });
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    // CLI11 looks for what is missing first; a word that it does not know is the likelier cause of that too.
    if (const auto unknown = app.remaining(true); e.get_exit_code() != 0 && !unknown.empty()) {
      std::fprintf(stderr, "weft: there is no option or subcommand '%s' here; see weft --help\n",
                   unknown[0].c_str());
      return 2;
    }
    return app.exit(e);
  }
  try {
    const PolicyScope scope(configure(common));
    const int status = action();
    if (std::fflush(stdout) != 0 || std::ferror(stdout))
      throw Error(Status(Code::io, "standard output can't be written"));
    return status;
  } catch (const Error& e) {
    std::fprintf(stderr, "weft: %s\n", e.what());
    return 1;
  } catch (const std::exception& e) {  // memory or the file system ran out below a layer that returns Status
    std::fprintf(stderr, "weft: %s\n", e.what());
    return 1;
  }
}

}  // namespace
}  // namespace weft::cli

int main(int argc, char** argv) { return weft::cli::run(argc, argv); }
