#include "conformance/check.h"

#include <fmt/core.h>

#include "conformance/expectations.h"
#include "conformance/seam/modes.h"
#include "weft/status.h"

namespace weft::conformance {

const char* name(Found::State state) {
  constexpr const char* kNames[] = {"passed", "refused", "failed", "skipped"};
  return kNames[static_cast<size_t>(state)];
}

CheckRun::CheckRun(std::string backend, CheckOptions options)
    : backend_(std::move(backend)), options_(std::move(options)) {}

bool CheckRun::is_asked(const std::string& whole) const {
  // Asked also of what is not selected: `skip` notes which of its entries match a case.
  const bool skipped = options_.skip.cover(whole);
  return (options_.only.empty() || options_.only.cover(whole)) && !skipped;
}

bool CheckRun::wants(const std::string& name) const {
  // A selected case, or a prefix of one.
  const std::string whole = check_.empty() ? name : check_ + "/" + name;
  if (over() || !(is_asked(whole) || (options_.only.lie_below(whole) && !options_.skip.cover(whole))))
    return false;
  if (begins) begins({check_.empty() ? name : check_, check_.empty() ? "" : name, {}});
  return true;
}

static Found found_by(const std::function<Found()>& body) {
  try {
    return body();
  } catch (const Error& e) {
    return e.status().code() == Code::unsupported ? Found::refused(e.status().message())
                                                  : Found::wrong(e.what());
  } catch (const std::exception& e) {
    return Found::wrong(e.what());
  }
}

void CheckRun::run(const std::string& name, const std::function<Found()>& body) {
  if (over() || !is_asked(check_ + "/" + name)) return;
  CaseResult r{check_, name, {}};
  if (begins) begins(r);
  // Loading the backend or opening its device may have changed the modes, too.
  if (auto modes = changed_modes(); !modes.empty()) {
    restore_modes();
    r.found = Found::wrong("this thread's modes were changed before it began: " + modes);
    return keep(std::move(r));
  }
  r.found = found_by(body);
  if (auto modes = changed_modes(); !modes.empty()) {
    restore_modes();
    r.found = Found::wrong("it changed this thread's modes: " + modes);
  }
  keep(std::move(r));
}

void CheckRun::run(const Check& check) {
  check_.clear();
  if ((options_.quick && check.takes_long) || !wants(check.name)) return;
  check_ = check.name;
  const auto before = counts_;
  check.run(*this);
  if (counts_ == before && !options_.selects()) keep({check_, "", Found::wrong("no case was executed")});
  check_.clear();
  if (!ended) return;
  auto its = counts_;
  for (size_t i = 0; i < its.size(); ++i) its[i] -= before[i];
  ended(check, its);
}

void CheckRun::run_all() {
  for (const Check* check : all_checks()) run(*check);
  if (!expectations || options_.selects()) return;
  for (const auto& left : expectations->unmatched())
    keep({"expectations", fmt::format("line {}", left.line),
          Found::wrong(fmt::format("no case is {} as '{}' says: take the line out",
                                   conformance::name(left.state), left.pattern))});
}

void CheckRun::keep(CaseResult r) {
  if (expectations && r.check != "expectations") r.found = expectations->judged(r);
  ++counts_[static_cast<size_t>(r.found.state)];
  const bool executed = r.found.state == Found::State::passed || r.found.state == Found::State::failed;
  if (executed) ++by_check_[r.check];
  if (progress) progress(r);
  if (r.found.state == Found::State::failed)
    failures_.push_back(std::move(r));
  else if (r.found.state == Found::State::skipped)
    skipped_.push_back(std::move(r));
}

std::string shell_word(const std::string& word) {
  if (word.find_first_of(" \t\n'\"\\$`&|;<>()*?[]#~!{}") == word.npos) return word;
  std::string s = "'";
  for (const char c : word) s += c == '\'' ? "'\\''" : std::string(1, c);
  return s + "'";
}

std::string CheckRun::command(const CaseResult& r) const {
  const std::string line = !options_.repeat.empty() ? options_.repeat
                           : options_.seed == 1
                               ? "weft check " + backend_
                               : fmt::format("weft check {} --seed {}", backend_, options_.seed);
  // A finding about a whole run is repeated by a whole run.
  if (r.check == "expectations" || r.check == "used_by_models") return line;
  return fmt::format("{} --only {}", line, shell_word(r.check + "/" + r.name));
}

}  // namespace weft::conformance
