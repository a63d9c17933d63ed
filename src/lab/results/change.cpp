#include "lab/results/change.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "lab/results/file.h"
#include "lab/results/result.h"

namespace weft::lab {
namespace {

using nlohmann::json;

std::string label_of(const json& result) { return result.at("operation").at("label").get<std::string>(); }
std::string contender_of(const json& row) { return row.at("contender").get<std::string>(); }
std::string baseline_of(const json& result) {
  return result.at("rows").empty() ? "" : contender_of(result.at("rows")[0]);
}

const json* row_of(const json& result, const std::string& contender) {
  for (const json& row : result.at("rows"))
    if (contender_of(row) == contender) return &row;
  return nullptr;
}

Verdict verdict_of(const json& row) {
  for (const auto v : {Verdict::wrong, Verdict::invalid})
    if (row.at("verdict") == name(v)) return v;
  return Verdict::undecided;
}

Interval ratio_in(const json& row) {
  const auto& r = row.at("ratio");
  return {r.at("low").get<double>(), r.at("middle").get<double>(), r.at("high").get<double>()};
}

// On logarithms the two errors add like those of independent numbers, each side by itself.
Interval quotient(const Interval& after, const Interval& before) {
  const double middle = after.middle / before.middle;
  const auto off = [](double a, double b) { return std::log(a / b); };
  const double below = std::hypot(off(after.middle, after.low), off(before.high, before.middle)),
               above = std::hypot(off(after.high, after.middle), off(before.middle, before.low));
  return {middle * std::exp(-below), middle, middle * std::exp(above)};
}

bool can_be_divided(const Interval& i) { return i.low > 0 && i.low <= i.middle && i.middle <= i.high; }

Change change_of(const json& before, const json& after, const json& old_row, const json& new_row,
                 double margin) {
  Change c{.operation = label_of(after), .contender = contender_of(new_row), .baseline = baseline_of(after)};
  if (const auto now = verdict_of(new_row); now != Verdict::undecided)
    return c.verdict = now, c.why = new_row.at("why").get<std::string>(), c;
  if (const auto then = verdict_of(old_row); then != Verdict::undecided)
    return c.why = fmt::format("it was {} before", name(then)), c;
  if (baseline_of(before) != baseline_of(after))
    return c.why = fmt::format("the baseline was {} and is {}", baseline_of(before), baseline_of(after)), c;
  if (!old_row.contains("ratio") || !new_row.contains("ratio"))
    return c.why = fmt::format("it was not timed {}", old_row.contains("ratio") ? "after" : "before"), c;
  c.before = ratio_in(old_row), c.after = ratio_in(new_row);
  if (!can_be_divided(c.before) || !can_be_divided(c.after)) return c.why = "a ratio is no interval", c;
  c.change = quotient(c.after, c.before), c.verdict = decide(c.change, margin);
  return c;
}

void add_changes(const json& before, const json& after, double margin, Changes& to) {
  const auto base = baseline_of(after);
  for (const json& row : after.at("rows")) {
    const auto contender = contender_of(row);
    const json* old = row_of(before, contender);
    if (contender == base && old && verdict_of(row) == Verdict::undecided) continue;  // by itself it is 1
    if (old)
      to.all.push_back(change_of(before, after, *old, row, margin));
    else
      to.only_after.push_back(fmt::format("{} of {}", contender, label_of(after)));
  }
  for (const json& row : before.at("rows"))
    if (!row_of(after, contender_of(row)))
      to.only_before.push_back(fmt::format("{} of {}", contender_of(row), label_of(before)));
}

}  // namespace

Changes changes_between(const std::vector<json>& before, const std::vector<json>& after, double margin) {
  const auto old = last_of_each(before), now = last_of_each(after);
  const auto find = [](const auto& in, const json* wanted) {
    return std::ranges::find_if(in, [&](const json* r) { return call_of(*r) == call_of(*wanted); });
  };
  Changes found;
  for (const json* result : now) {
    if (const auto at = find(old, result); at != old.end())
      add_changes(**at, *result, margin, found);
    else
      found.only_after.push_back(label_of(*result));
  }
  for (const json* result : old)
    if (find(now, result) == now.end()) found.only_before.push_back(label_of(*result));
  return found;
}

Verdict worst_of(const Changes& changes) {
  Verdict worst = changes.all.empty() || !changes.only_before.empty() ? Verdict::undecided : Verdict::same;
  for (const Change& c : changes.all)
    if (status_of(c.verdict) > status_of(worst)) worst = c.verdict;
  return worst;
}

}  // namespace weft::lab
