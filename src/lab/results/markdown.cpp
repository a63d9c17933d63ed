#include "lab/results/markdown.h"

#include <map>
#include <nlohmann/json.hpp>

#include "lab/results/file.h"
#include "weft/status.h"

namespace weft::lab {
namespace {

using nlohmann::json;

std::string text_of(const json& value) { return value.get<std::string>(); }

// In a cell of a table: a name or a compiler's log may hold anything.
std::string cell(std::string text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '\\' || c == '`' || c == '<') out += '\\';
    out += c == '\n' || c == '\r' ? ' ' : c;
  }
  return out;
}

std::string percent(const json& row, const char* name) {
  return row.contains(name) ? fmt::format("{:.1f} %", 100 * row[name].get<double>()) : "";
}

std::string number(const json& row, const char* name) {
  return row.contains(name) ? fmt::format("{:.2f}", row[name].get<double>()) : "";
}

std::string ratio_in_words(const json& row) {
  if (!row.contains("ratio")) return "";
  const auto& r = row["ratio"];
  return fmt::format("{:.3f} ({:.3f} to {:.3f})", r["middle"].get<double>(), r["low"].get<double>(),
                     r["high"].get<double>());
}

std::string line_of(const json& row, bool baseline) {
  const auto verdict = text_of(row["verdict"]);
  const bool out = verdict == "WRONG" || verdict == "INVALID";
  const auto bound = row["accuracy"]["share_of_bound"];
  std::string times;
  if (const auto t = row.find("nanoseconds"); t != row.end())
    times = fmt::format("{:.2f} ({:.2f} to {:.2f})", (*t)["median"].get<double>() / 1e3,
                        (*t)["p10"].get<double>() / 1e3, (*t)["p90"].get<double>() / 1e3);
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", cell(text_of(row["contender"])),
                     baseline && !out ? "baseline" : verdict, times, baseline ? "" : ratio_in_words(row),
                     number(row, "gigabytes_per_second"), percent(row, "share_of_bandwidth"),
                     number(row, "gigaflops"), percent(row, "share_of_peak"),
                     out                 ? cell(text_of(row["why"]))
                     : bound.is_number() ? fmt::format("{:.2g} of the bound", bound.get<double>())
                                         : "");
}

std::string table_of(const json& result) {
  std::string s = fmt::format(
      "\n## {}\n\n| contender | verdict | microseconds (10 to 90 %) | times as fast (interval of {:.4g} %) | "
      "GB/s | "
      "of a copy | Gflop/s | of the peak | accuracy |\n| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: "
      "| --- |\n",
      cell(text_of(result["operation"]["label"])), 100 * result["options"]["confidence"].get<double>());
  for (size_t i = 0; i < result["rows"].size(); ++i) s += line_of(result["rows"][i], i == 0);
  return s;
}

std::string history_of(const std::vector<const json*>& of_call) {
  std::string s =
      "\n| date | commit | contender | verdict | times as fast |\n| --- | --- | --- | --- | ---: |\n";
  for (const json* r : of_call)
    for (size_t i = 1; i < (*r)["rows"].size(); ++i) {
      const auto& row = (*r)["rows"][i];
      s += fmt::format("| {} | {} | {} | {} | {} |\n", cell(text_of((*r)["date"])),
                       cell(text_of((*r)["weft"]["commit"])), cell(text_of(row["contender"])),
                       text_of(row["verdict"]), ratio_in_words(row));
    }
  return s;
}

std::string machine_of(const json& result) {
  const auto& m = result["machine"];
  std::string s =
      fmt::format("\n## Machine\n\n{}, {} cores, {} threads, {:.1f} GiB of memory, {}; load {:.2f} before. ",
                  text_of(m["processor"]), m["cores"].get<int64_t>(), m["threads"].get<int64_t>(),
                  m["memory_bytes"].get<double>() / (1 << 30), text_of(m["system"]), m["load"].get<double>());
  if (m.contains("limits"))
    s += fmt::format("Measured: a copy {:.1f} GB/s, in the cache {:.1f} GB/s, {:.1f} Gflop/s. ",
                     m["limits"]["copy_gigabytes_per_second"].get<double>(),
                     m["limits"]["cached_copy_gigabytes_per_second"].get<double>(),
                     m["limits"]["gigaflops"].get<double>());
  if (m.contains("device_limits"))
    for (const auto& [device, limits] : m["device_limits"].items()) {
      s += fmt::format("On {}: a copy {:.1f} GB/s, {:.1f} Gflop/s", cell(device),
                       limits["copy_gigabytes_per_second"].get<double>(), limits["gigaflops"].get<double>());
      for (const auto& [dtype, rate] : limits["products"].items())
        s += fmt::format(", products of {} {:.1f} Gflop/s", cell(dtype), rate.get<double>());
      s += ". ";
    }
  s += fmt::format("Weft {} at {}.\n", text_of(result["weft"]["version"]), text_of(result["weft"]["commit"]));
  for (const auto& [what, version] : m["software"].items())
    s += fmt::format("- {}: {}\n", cell(what), cell(version.is_string() ? text_of(version) : version.dump()));
  return s;
}

}  // namespace

std::string markdown_of(const std::vector<json>& results) {
  std::string s = "# Kernels compared by weft lab\n";
  std::map<std::string, std::vector<const json*>> by_call;
  for (const json& r : results) by_call[call_of(r)].push_back(&r);
  for (const json* last : last_of_each(results)) {
    s += table_of(*last);
    if (const auto& all = by_call[call_of(*last)]; all.size() > 1) s += history_of(all);
  }
  return results.empty() ? s : s + machine_of(results.back());
}

}  // namespace weft::lab
