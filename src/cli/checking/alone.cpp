#include "cli/checking/alone.h"

#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/checking/process.h"
#include "cli/files.h"

namespace weft::cli {
namespace {

using Names = std::vector<std::string>;

/// A temporary file with a case per line, for --only @FILE.
class CaseFile {
 public:
  explicit CaseFile(const Names& names)
      : path_(std::filesystem::temp_directory_path() / fmt::format("weft_check_{}.cases", ::getpid())) {
    std::string text;
    for (const auto& name : names) text += name + "\n";
    write_text(path_, text);
  }
  ~CaseFile() {
    std::error_code left;
    std::filesystem::remove(path_, left);
  }
  CaseFile(const CaseFile&) = delete;
  std::string option() const { return "@" + path_.string(); }

 private:
  std::filesystem::path path_;
};

// Does this run's report list the case as a failure? None if there is no report.
std::optional<bool> fails(const std::string& report, const std::string& name) {
  const auto json = nlohmann::json::parse(report, nullptr, false);
  if (!json.is_object() || !json.contains("failures")) return std::nullopt;
  return std::ranges::any_of(json["failures"], [&](const auto& f) { return f.value("case", "") == name; });
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return fmt::format("the process ended: {}", ::strsignal(WTERMSIG(status)));
  return fmt::format("the process ended with status {} and said nothing", WEXITSTATUS(status));
}

}  // namespace

Again::Again(std::vector<std::string> arguments, double seconds) : arguments_(std::move(arguments)) {
  using Clock = std::chrono::steady_clock;
  end_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  arguments_.insert(arguments_.end(), {"--json", "--again", "0"});
}

double Again::left() const {
  return std::chrono::duration<double>(end_ - std::chrono::steady_clock::now()).count();
}

Again::Ran Again::run(std::span<const std::string> before, const std::string& last) {
  Names all(before.begin(), before.end());
  all.push_back(last);
  const CaseFile file(all);
  auto arguments = arguments_;
  arguments.insert(arguments.end(), {"--only", file.option()});
  const Finished done = run_this_program(arguments, left());
  if (!done.ended) return {End::no_time, ""};
  if (const auto failed = fails(done.out, last)) return {*failed ? End::fails : End::passes, ""};
  return {End::breaks, how_it_ended(done.status)};
}

// Delta debugging: leaves out one part after the other, of half of the cases first, then of fewer, as long as
// the last case fails without it.
std::vector<std::string> Again::smaller(Names before, const std::string& last) {
  for (size_t part = (before.size() + 1) / 2; part > 0; part = part == 1 ? 0 : (part + 1) / 2)
    for (size_t at = 0; at < before.size() && left() > 0;) {
      Names fewer(before);
      const auto begin = fewer.begin() + static_cast<std::ptrdiff_t>(at);
      fewer.erase(begin, begin + static_cast<std::ptrdiff_t>(std::min(part, before.size() - at)));
      const End end = run(fewer, last).end;
      if (end == End::fails || end == End::breaks)
        before = std::move(fewer);
      else
        at += part;
    }
  return before;
}

Alone Again::ask(std::span<const std::string> ran) {
  const std::string& last = ran.back();
  const auto alone = run({}, last);
  if (alone.end == End::no_time) return {"was not run alone: the time for that has passed", {}};
  if (alone.end == End::fails) return {"fails alone, too", {}};
  if (alone.end == End::breaks) return {"fails alone, too: " + alone.words, {}};
  const auto before = ran.first(ran.size() - 1);
  // Its cause most likely ran shortly before.
  for (size_t n = 1; !before.empty(); n *= 8) {
    const auto window = before.last(std::min(n, before.size()));
    const End end = run(window, last).end;
    if (end == End::no_time) break;
    if (end != End::passes)
      return {"passes alone: depends on what ran before", smaller({window.begin(), window.end()}, last)};
    if (window.size() == before.size())
      return {"passes alone, and after all that ran before it, too: it does not fail each time", {}};
  }
  return {"passes alone: depends on what ran before; there was no time to find out on what", {}};
}

}  // namespace weft::cli
