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

// What a backend is held to. Each file conformance/checks/<folder>/<name>.cpp defines `const Check
// <name>_check`; the build lists the folders.
namespace weft::conformance {

/// What a case came to.
struct Found {
  enum class State : uint8_t { passed, refused, failed, skipped } state = State::passed;
  std::string words;  ///< what is wrong, or why it is refused

  static Found refused(std::string why) { return {State::refused, std::move(why)}; }
  static Found skipped(std::string why) { return {State::skipped, std::move(why)}; }
  /// Passed where `words` are none.
  static Found wrong(std::string words) {
    const State state = words.empty() ? State::passed : State::failed;
    return {state, std::move(words)};
  }
};
const char* name(Found::State state);

/// What a backend answered to the cases of one op in one dtype: a cell of the support matrix.
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

/// What a run of checks is asked for.
struct CheckOptions {
  Beginnings only;             ///< of the "check/case" of cases that are run; empty: all
  Beginnings skip;             ///< of cases that are not
  std::string repeat;          ///< the command line but for --only; empty: made of backend and seed
  uint64_t seed = 1;           ///< of what is drawn
  bool full = false;           ///< the figures of a full run instead of those that a test can afford
  bool first_failure = false;  ///< ends there: nothing more is asked
  bool quick = false;          ///< without the checks that take long
  /// Do `only` or `skip` leave out some cases?
  bool selects() const { return !only.empty() || !skip.empty(); }
};

/// As a shell takes it for one word.
std::string shell_word(const std::string& word);

class Expectations;

/// Runs the cases of checks on one backend, and keeps what came of them.
class CheckRun {
 public:
  CheckRun(std::string backend, CheckOptions options);
  /// What is known of the backend; null: every refusal with a reason will do. It outlives this.
  Expectations* expectations = nullptr;
  /// Runs all of all_checks(), or those that are asked for; then no expectation may be left over.
  void run_all();
  const std::string& backend() const { return backend_; }
  const CheckOptions& options() const { return options_; }
  /// Called before each case and before what makes cases ready, with the beginning of their names; after each
  /// case; and after each check with its cases by state.
  std::function<void(const CaseResult&)> begins, progress;
  /// Called by a check that knows how far it is.
  std::function<void(size_t done, size_t of)> reached;
  void at(size_t done, size_t of) const {
    if (reached) reached(done, of);
  }
  std::function<void(const struct Check&, const std::array<int64_t, 4>&)> ended;

  /// Is any case of this check, or whose name begins so, asked for, and not yet answered by a failure? Then
  /// they are made ready now.
  bool wants(const std::string& name) const;
  /// Runs a case if it is asked for. What it raises is a finding; an Error of code unsupported a refusal.
  void run(const std::string& name, const std::function<Found()>& body);
  /// Runs `check` and counts: one whose cases were all left out has no say, one without any fails.
  void run(const struct Check& check);

  SupportMatrix matrix;
  /// Kernels that cases ran, by the ledger.
  std::set<std::string> covered;

  const std::vector<CaseResult>& failures() const { return failures_; }
  const std::vector<CaseResult>& skipped() const { return skipped_; }
  int64_t count(Found::State state) const { return counts_[static_cast<size_t>(state)]; }
  /// Cases that passed or failed, in all and by check.
  int64_t executed() const { return count(Found::State::passed) + count(Found::State::failed); }
  const std::map<std::string, int64_t>& executed_by_check() const { return by_check_; }
  /// The command that repeats a case, as a shell takes it.
  std::string command(const CaseResult& r) const;

 private:
  void keep(CaseResult r);
  bool is_asked(const std::string& whole) const;
  bool over() const { return options_.first_failure && !failures_.empty(); }

  std::string backend_;
  CheckOptions options_;
  std::string check_;  // that runs now
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
