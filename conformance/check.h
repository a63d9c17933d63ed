#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "conformance/beginnings.h"
#include "weft/dtype.h"

// The checks that a backend must pass. Each file conformance/checks/<folder>/<name>.cpp defines `const Check
// check` in namespace checks::<name>; the build lists the folders.
namespace weft::conformance {

/// The outcome of a case.
struct Found {
  enum class State : uint8_t { passed, refused, failed, skipped } state = State::passed;
  std::string words;  ///< what is wrong, or why it is refused

  static Found refused(std::string why) { return {State::refused, std::move(why)}; }
  static Found skipped(std::string why) { return {State::skipped, std::move(why)}; }
  /// Passed if `words` is empty.
  static Found wrong(std::string words) {
    const State state = words.empty() ? State::passed : State::failed;
    return {state, std::move(words)};
  }
};
const char* name(Found::State state);

/// A backend's results for the cases of one op in one dtype: a cell of the support matrix.
struct Support {
  std::set<std::string> kernels;   ///< that ran, by the ledger
  std::set<std::string> refusals;  ///< reasons
  int cases = 0;                   ///< that were executed
  bool decomposed = false;         ///< some case ran as simpler ops
};
using SupportMatrix = std::map<std::string, std::map<DType, Support>>;

struct CaseResult {
  std::string check, name;
  Found found;
};

/// The options of a run of checks.
struct CheckOptions {
  Beginnings only;             ///< of the "check/case" of cases that are run; empty: all
  Beginnings skip;             ///< of cases that are not
  std::string repeat;          ///< the command line but for --only; empty: made of backend and seed
  uint64_t seed = 1;           ///< of what is drawn
  bool full = false;           ///< the figures of a full run instead of those that a test can afford
  bool first_failure = false;  ///< ends there: nothing more is asked
  bool quick = false;          ///< without the checks that take long
  /// Whether `only` or `skip` leave out cases.
  bool selects() const { return !only.empty() || !skip.empty(); }
};

/// Quoted as one word for a shell.
std::string shell_word(const std::string& word);

class Expectations;

/// Runs the cases of checks on one backend and keeps their results.
class CheckRun {
 public:
  CheckRun(std::string backend, CheckOptions options);
  /// The backend's expected refusals and known faults; null: every refusal with a reason passes. Must outlive
  /// this.
  Expectations* expectations = nullptr;
  /// Runs all_checks(), or the selected ones; afterwards no expectation may be unused.
  void run_all();
  const std::string& backend() const { return backend_; }
  const CheckOptions& options() const { return options_; }
  /// Called before each case, and before cases are prepared with the prefix of their names; after each case;
  /// and after each check with its cases by state.
  std::function<void(const CaseResult&)> begins, progress;
  /// Called by checks that know their progress.
  std::function<void(size_t done, size_t of)> reached;
  void at(size_t done, size_t of) const {
    if (reached) reached(done, of);
  }
  std::function<void(const struct Check&, const std::array<int64_t, 4>&)> ended;

  /// Whether a case of this check, or with this prefix, is selected and not yet decided by a failure. If so,
  /// the caller prepares them now.
  bool wants(const std::string& name) const;
  /// Runs a case if it is selected. An exception is a finding; an Error of code unsupported is a refusal.
  void run(const std::string& name, const std::function<Found()>& body);
  /// Runs `check` and counts its cases. A check whose cases were all left out does not count; one without
  /// cases
  /// fails.
  void run(const struct Check& check);

  SupportMatrix matrix;
  /// The kernels that cases ran, from the ledger.
  std::set<std::string> covered;

  const std::vector<CaseResult>& failures() const { return failures_; }
  const std::vector<CaseResult>& skipped() const { return skipped_; }
  int64_t count(Found::State state) const { return counts_[static_cast<size_t>(state)]; }
  /// Cases that passed or failed, in total and by check.
  int64_t executed() const { return count(Found::State::passed) + count(Found::State::failed); }
  const std::map<std::string, int64_t>& executed_by_check() const { return by_check_; }
  /// The shell command that repeats a case.
  std::string command(const CaseResult& r) const;

 private:
  void keep(CaseResult r);
  bool is_asked(const std::string& whole) const;
  bool over() const { return options_.first_failure && !failures_.empty(); }

  std::string backend_;
  CheckOptions options_;
  std::string check_;  // the running one
  std::vector<CaseResult> failures_, skipped_;
  std::map<std::string, int64_t> by_check_;
  std::array<int64_t, 4> counts_{};
};

struct Check {
  const char* name;
  const char* proves;  ///< in a line, for people
  void (*run)(CheckRun&);
  bool takes_long = false;  ///< asked of the first device of a backend alone, unless another is named
};
std::span<const Check* const> all_checks();

}  // namespace weft::conformance
