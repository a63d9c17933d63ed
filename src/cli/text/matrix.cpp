#include "cli/text/matrix.h"

#include "cli/show.h"

namespace weft::cli {
namespace {

using conformance::Support;

std::string joined(const std::set<std::string>& words, const char* between) {
  std::string s;
  for (const auto& w : words) s += (s.empty() ? "" : between) + w;
  return s;
}

// Kernels without the backend's prefix; the first line of a reason.
std::string cell(const Support& s, const std::string& backend) {
  if (s.cases == 0 && s.refusals.empty()) return "";
  if (s.cases == 0) return "refused";
  std::set<std::string> short_names;
  for (const auto& k : s.kernels)
    short_names.insert(k.starts_with(backend + ".") ? k.substr(backend.size() + 1) : k);
  return (s.decomposed ? "decomposed: " : "") + joined(short_names, ", ");
}

std::string markdown(const conformance::CheckRun& run) {
  std::string out = fmt::format(
      "# What {} serves\n\nMade by `weft check {} --matrix FILE`: the kernels that ran in the "
      "cases of each op, by the ledger.\n",
      run.backend(), run.backend());
  for (const auto& [op, by_dtype] : run.matrix) {
    out += fmt::format("\n## {}\n\n| dtype | kernels | cases |\n| --- | --- | --- |\n", op);
    for (const auto& [dtype, s] : by_dtype)
      if (const auto text = cell(s, run.backend()); !text.empty())
        out += fmt::format("| {} | {} | {} |\n", name(dtype), text, s.cases);
    std::set<std::string> reasons;
    for (const auto& [dtype, s] : by_dtype) reasons.insert(s.refusals.begin(), s.refusals.end());
    for (const auto& reason : reasons) out += fmt::format("\n```text\n{}\n```\n", reason);
  }
  return out;
}

Json as_objects(const conformance::CheckRun& run) {
  Json ops = Json::object();
  for (const auto& [op, by_dtype] : run.matrix) {
    Json dtypes;
    for (const auto& [dtype, s] : by_dtype)
      dtypes.set(name(dtype), {{"kernels", s.kernels},
                               {"decomposed", s.decomposed},
                               {"cases", s.cases},
                               {"refusals", s.refusals}});
    ops.set(op, dtypes);
  }
  return {{"backend", run.backend()}, {"ops", ops}};
}

}  // namespace

std::string matrix_text(const conformance::CheckRun& run, bool as_json) {
  return as_json ? as_objects(run).text(1) + "\n" : markdown(run);
}

}  // namespace weft::cli
