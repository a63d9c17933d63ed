#include <nlohmann/json.hpp>

#include "cli/files.h"
#include "cli/lab/lab.h"
#include "cli/show.h"
#include "lab/results/file.h"
#include "lab/results/markdown.h"
#include "report_html.h"

// Results as a page that needs nothing else, and as Markdown.
namespace weft::cli {
namespace {

std::string page_of_results(const std::vector<nlohmann::json>& results) {
  std::string data = "[", page(report_html);
  for (const auto& r : results) data += (data.size() > 1 ? ",\n" : "") + lab::line_of(r);
  data += "]";
  for (size_t at = 0; (at = data.find('<', at)) != data.npos; at += 6)
    data.replace(at, 1, "\\u003c");  // a name can't end the script
  constexpr std::string_view kHole = "@DATA@";
  return page.replace(page.find(kHole), kHole.size(), data);
}

}  // namespace

int report_results(const LabOptions& o) {
  if (o.words.size() < 2) throw UsageError(invalid("weft lab report takes files of results; got none"));
  std::vector<nlohmann::json> results;
  for (size_t i = 1; i < o.words.size(); ++i) {
    for (const auto& out : {o.html, o.markdown}) refuse_to_overwrite(out, "a file of results", o.words[i]);
    for (auto& r : value_or_raise(lab::read_results(o.words[i]))) results.push_back(std::move(r));
  }
  // By their dates, in which way the files are named; equal ones stay as they are.
  std::ranges::stable_sort(results, {}, [](const nlohmann::json& r) { return r["date"].get<std::string>(); });
  if (!o.html.empty()) write_text(output_path(o.html), page_of_results(results));
  if (!o.markdown.empty()) write_text(output_path(o.markdown), lab::markdown_of(results));
  if (o.html.empty() && o.markdown.empty()) fmt::print("{}", lab::markdown_of(results));
  return 0;
}

}  // namespace weft::cli
