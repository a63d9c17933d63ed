#include "conformance/drawn/trial.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "conformance/check.h"
#include "conformance/drawn/draw.h"
#include "ir/op.h"
#include "seam/registry.h"

namespace weft::conformance {
namespace {

CheckRun first_failure(const std::string& backend, const std::string& only, bool full) {
  CheckRun run(backend, {.only = only, .full = full, .first_failure = true});
  for (const Check* check : all_checks()) run.run(*check);
  return run;
}

// Does the good backend pass this case, if only by a refusal? A case named after the fault, such as a kernel
// id that should not exist, is not there: then all cases of its op must pass, or else its whole check.
bool has_alibi(const std::string& good, const std::string& liar, const CaseResult& found, bool full) {
  std::string name = found.name;
  if (const size_t at = name.find(liar); at != name.npos) name.replace(at, liar.size(), good);
  CheckRun same(good, {.only = found.check + "/" + name, .full = full});
  for (const Check* check : all_checks()) same.run(*check);
  if (!same.failures().empty()) return false;
  if (same.executed() + same.count(Found::State::refused) > 0) return true;
  if (const std::string op = found.name.substr(0, found.name.find(' ')); ir::find_op(op)) {
    CheckRun others(good, {.only = fmt::format("{}/{} ", found.check, op)});
    for (const Check* check : all_checks()) others.run(*check);
    return others.failures().empty();
  }
  CheckRun whole(good, {.only = found.check + "/"});
  for (const Check* check : all_checks()) whole.run(*check);
  return whole.failures().empty() && whole.executed() + whole.count(Found::State::skipped) > 0;
}

// Is there a case among these that `liar` fails and the good backend passes?
bool convicted(Trial& trial, const std::string& liar, const std::string& only, bool full = false) {
  const CheckRun run = first_failure(liar, only, full);
  if (run.failures().empty()) {
    trial.words = fmt::format("{} does not see it in {} cases ({} refused)", only, run.executed(),
                              run.count(Found::State::refused));
    return false;
  }
  const CaseResult& found = run.failures()[0];
  const std::string name = found.check + "/" + found.name;
  const bool alibi = has_alibi(trial.on, liar, found, full);
  trial.by = alibi ? name : "";
  trial.words = alibi ? found.found.words : fmt::format("{} fails, and so it does on {}", name, trial.on);
  return true;
}

// Why the good backend has no such case; empty if it has one.
std::string why_none(const std::string& good, const std::string& only) {
  CheckRun run(good, {.only = only, .first_failure = true});
  for (const Check* check : all_checks()) run.run(*check);
  if (run.executed() > 0) return "";
  return run.skipped().empty() ? fmt::format("it runs no case of {}", only) : run.skipped()[0].found.words;
}

// The checks that can see such a fault of this op, the likeliest first.
std::vector<std::string> likeliest(const Lie& lie) {
  const auto of_op = [&](const char* check) { return fmt::format("{}/{}", check, lie.op); };
  const auto cases = [&](const char* check) { return of_op(check) + " "; };  // so max does not match max_pool
  switch (lie.flaw->kind) {
    case Flaw::Kind::sum:
      return {of_op("accumulates"), "adds_where_asked", cases("ops"), cases("edges"),
              cases("accumulates_at_size")};
    case Flaw::Kind::memory: return {of_op("places"), cases("guards")};
    default:
      return {cases("ops"),    cases("edges"), cases("candidates"),
              of_op("places"), cases("sizes"), cases("large")};
  }
}

// All other checks, except slow ones and those that test no kernel. Liars that touch foreign memory don't get
// these.
std::vector<std::string> others(const Lie& lie, const std::vector<std::string>& done) {
  if (lie.flaw->kind == Flaw::Kind::memory) return {"stays_within_bounds"};
  static const std::set<std::string> slow = {"accumulates_at_size",
                                             "arranged",
                                             "gradients",
                                             "graphs",
                                             "guards",
                                             "huge",
                                             "large",
                                             "races",
                                             "sizes",
                                             "used_by_models",
                                             "wild_indices"};
  std::vector<std::string> all;
  for (const Check* check : all_checks()) {
    const std::string name = check->name;
    const bool seen = std::ranges::any_of(done, [&](auto& d) { return d.starts_with(name); });
    if (!seen && !slow.contains(name)) all.push_back(name + "/");
  }
  return all;
}

}  // namespace

Trial try_liar(const Liar& liar, const std::string& backend) {
  Trial trial{.liar = liar.name, .fault = liar.fault, .on = backend};
  const char* const lacking =
      liar.lacks ? liar.lacks(*value_or_raise(seam::registry().open(backend))) : nullptr;
  if (lacking) {
    trial.left_out = lacking;
    return trial;
  }
  const Wrapped& awake = wake(liar, backend);
  std::string none;  // why no case was run
  bool asked = false;
  for (const char* check : {liar.caught_by, liar.or_by}) {
    if (!check) break;
    // A plain run stops drawing after some time: on a slow machine, early. Cases are named after their op.
    const std::string of_op = fmt::format("{}/{}", check, awake.one_op());
    if (!awake.one_op().empty() && convicted(trial, awake.name(), of_op, true) && trial.caught())
      return trial;
    if (convicted(trial, awake.name(), check, true)) return trial;
    none = why_none(backend, check);
    asked |= none.empty();
  }
  if (!asked) trial.left_out = none;
  return trial;
}

Trial try_drawn(const std::string& backend, uint64_t seed, uint64_t index) {
  Teller& liar = teller(backend);
  Drawing drawing(backend);
  Random random((seed + 1) * 0x9e3779b97f4a7c15 ^ (index + 1) * 0xd1b54a32d192ed03);
  Trial trial{.liar = drawn_name(seed, index), .on = backend};
  for (;;) {
    const Lie lie = drawing.draw(random);
    trial.fault = text(lie);
    liar.tell(lie);
    const auto first = likeliest(lie);
    const auto catches = [&](const std::string& only) { return convicted(trial, liar.name(), only); };
    if (std::ranges::any_of(first, catches)) return trial;
    if (liar.told() == 0) continue;
    if (!std::ranges::any_of(others(lie, first), catches))
      trial.words = fmt::format("changed the results of {} launches, and passes", liar.told());
    return trial;
  }
}

std::string drawn_name(uint64_t seed, uint64_t index) { return fmt::format("drawn_{}_{}", seed, index); }

std::optional<std::pair<uint64_t, uint64_t>> drawn_from_name(std::string_view name) {
  constexpr std::string_view kBegin = "drawn_";
  if (!name.starts_with(kBegin)) return std::nullopt;
  name.remove_prefix(kBegin.size());
  uint64_t seed = 0, index = 0;
  const char* end = name.data() + name.size();
  const auto [after, bad] = std::from_chars(name.data(), end, seed);
  if (bad != std::errc() || after == end || *after != '_') return std::nullopt;
  const auto [stop, wrong] = std::from_chars(after + 1, end, index);
  if (wrong != std::errc() || stop != end) return std::nullopt;
  return std::pair(seed, index);
}

}  // namespace weft::conformance
