#include <nlohmann/json.hpp>

#include "cli/lab/lab.h"
#include "cli/show.h"
#include "lab/results/change.h"
#include "lab/results/file.h"
#include "lab/results/result.h"

// What has changed from one file of results to another.
namespace weft::cli {
namespace {

Json to_json(const lab::Interval& i) { return {{"low", i.low}, {"middle", i.middle}, {"high", i.high}}; }

Json to_json(const lab::Change& c) {
  Json out{{"operation", c.operation},
           {"contender", c.contender},
           {"baseline", c.baseline},
           {"verdict", lab::name(c.verdict)},
           {"why", c.why}};
  if (c.why.empty())
    out.set("before", to_json(c.before)), out.set("after", to_json(c.after)),
        out.set("change", to_json(c.change));
  return out;
}

std::string in_words(const lab::Change& c) {
  const auto head = fmt::format("  {:<44} {:<10}", c.contender, lab::name(c.verdict));
  if (!c.why.empty()) return fmt::format("{} {}", head, c.why);
  return fmt::format("{} {:>8.3f} {:>8.3f}  {:.3f} times as fast ({:.3f} to {:.3f})", head, c.before.middle,
                     c.after.middle, c.change.middle, c.change.low, c.change.high);
}

std::string in_words(const lab::Changes& changes) {
  std::string words, operation;
  for (const auto& c : changes.all) {
    if (c.operation != operation)
      words += fmt::format("{}\n  {:<44} {:<10} {:>8} {:>8}\n", c.operation, "by " + c.baseline, "", "before",
                           "after");
    operation = c.operation;
    words += in_words(c) + "\n";
  }
  for (const auto& what : changes.only_before) words += "only before: " + what + "\n";
  for (const auto& what : changes.only_after) words += "only after: " + what + "\n";
  return words + std::string(lab::name(lab::worst_of(changes)));
}

}  // namespace

int compare_results(const LabOptions& o, const Common& common) {
  if (o.words.size() != 3)
    throw UsageError(invalid("weft lab compare takes two files, OLD and NEW; got {}", o.words.size() - 1));
  const auto changes = lab::changes_between(value_or_raise(lab::read_results(o.words[1])),
                                            value_or_raise(lab::read_results(o.words[2])), o.contest.margin);
  Json all = Json::list();
  for (const auto& c : changes.all) all.push_back(to_json(c));
  const auto worst = lab::worst_of(changes);
  Show(common.json)
      .result({{"verdict", lab::name(worst)},
               {"changes", all},
               {"only_before", changes.only_before},
               {"only_after", changes.only_after}},
              in_words(changes));
  return lab::status_of(worst);
}

}  // namespace weft::cli
