#include "nn/history.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/output_file.h"
#include "formats/file.h"
#include "formats/json.h"
#include "nn/settings.h"

namespace weft::nn {

namespace fs = std::filesystem;
using nlohmann::json;

static std::string log_path(const std::string& folder) { return (fs::path(folder) / "log.jsonl").string(); }

History::History(const std::string& folder, int64_t step) : folder_(folder) {
  if (folder.empty()) return;
  remove_unfinished(log_path(folder)), remove_unfinished(page_path());  // of a run that was killed
  std::error_code ec;
  if (step == 0) fs::remove(page_path(), ec);  // it shows the old run
  std::string kept;
  std::istringstream in;
  if (fs::exists(log_path(folder), ec)) {
    const auto bytes = formats::read_file(log_path(folder));
    if (!bytes.ok()) {  // unreadable: append to it
      trouble_ = bytes.status().message();
      return;
    }
    in.str({reinterpret_cast<const char*>(bytes.value().data()), bytes.value().size()});
  }
  for (std::string text; std::getline(in, text);) {
    const auto parsed = formats::parse_json_object(text, log_path(folder));
    if (!parsed.ok()) continue;
    const json& line = parsed.value();
    if (!line.contains("step") || !line["step"].is_number_integer() || line["step"] > step) continue;
    take(line);
    kept += text + "\n";
  }
  if (const Status s = formats::write_file(log_path(folder), kept); !s.ok()) trouble_ = s.message();
}

void History::take(const json& line) {
  const auto step = line["step"].get<int64_t>();
  const auto put = [&](const char* name, Points& to) {
    const auto at = line.find(name);
    const bool in_order = to.empty() || step >= to.back().first;
    if (at != line.end() && at->is_number() && in_order) to.emplace_back(step, *at);
  };
  put("loss", losses_), put("validation_loss", validation_), put("rate", rates_);
  put("tokens_per_second", speeds_);
  if (const auto at = line.find("sample"); at != line.end() && at->is_string())
    samples_.emplace_back(step, *at);
}

// JSON has no numbers that are not finite: those are texts.
static json number(double value) {
  return std::isfinite(value) ? json(value) : json(fmt::format("{}", value));
}

void History::add(const Moment& m) {
  json line = {{"step", m.step}};
  const auto put = [&](const char* name, const std::optional<double>& value) {
    if (value) line[name] = number(*value);
  };
  put("loss", m.loss), put("rate", m.rate), put("tokens_per_second", m.tokens_per_second);
  put("validation_loss", m.validation_loss);
  if (m.sample) line["sample"] = *m.sample;
  take(line);
  if (folder_.empty()) return;
  std::ofstream out(log_path(folder_), std::ios::app);
  out << line.dump(-1, ' ', false, json::error_handler_t::replace) << '\n' << std::flush;
  if (!out && trouble_.empty()) trouble_ = "can't write " + log_path(folder_);
}

std::string History::trouble() { return trouble_.empty() || std::exchange(told_, true) ? "" : trouble_; }

std::string History::page_path() const { return (fs::path(folder_) / "training.html").string(); }

Points thinned(const Points& points, size_t most) {
  if (points.size() <= most) return points;
  Points out;
  for (size_t i = 0; i < most; ++i) {
    const size_t begin = i * points.size() / most, end = (i + 1) * points.size() / most;
    double sum = 0;
    for (size_t k = begin; k < end; ++k) sum += points[k].second;
    out.emplace_back(points[(begin + end) / 2].first, sum / static_cast<double>(end - begin));
  }
  return out;
}

namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else
      out += c;
  }
  return out;
}

struct Series {
  const char* label;
  const char* color;
  Points points;
};

constexpr double kWidth = 860, kHeight = 260, kLeft = 64, kBottom = 28, kTop = 12;

/// The position of a chart's values on the page.
struct Axes {
  int64_t first = 0, last = 1;
  double low = 0, high = 1;

  explicit Axes(const std::vector<Series>& all) {
    bool any = false;
    for (const auto& s : all)
      for (const auto& [step, v] : s.points) {
        first = any ? std::min(first, step) : step, last = any ? std::max(last, step) : step;
        low = any ? std::min(low, v) : v, high = any ? std::max(high, v) : v;
        any = true;
      }
    if (last == first) last = first + 1;
    if (high == low) high = low + 1;
  }
  double x(int64_t step) const {
    return kLeft + (kWidth - kLeft) * static_cast<double>(step - first) / static_cast<double>(last - first);
  }
  double y(double v) const { return kTop + (kHeight - kTop - kBottom) * (high - v) / (high - low); }
};

std::string chart(const char* title, const std::vector<Series>& all) {
  const Axes axes(all);
  std::string out = fmt::format("<h2>{}</h2><svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">",
                                title, kWidth + 8, kHeight, title);
  for (int i = 0; i <= 4; ++i) {
    const double v = axes.low + (axes.high - axes.low) * i / 4;
    const auto step = axes.first + (axes.last - axes.first) * i / 4;
    out += fmt::format("<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" class=\"grid\"/>", kLeft,
                       kWidth, axes.y(v));
    out += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:.4g}</text>", kLeft - 6,
                       axes.y(v) + 4, v);
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>", axes.x(step),
                       kHeight - 8, step);
  }
  std::string legend;
  for (const auto& s : all) {
    if (s.points.empty()) continue;
    std::string path;
    for (const auto& [step, v] : s.points)
      path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "M" : "L", axes.x(step), axes.y(v));
    out += fmt::format("<path d=\"{}\" stroke=\"{}\"><title>{}</title></path>", path, s.color, s.label);
    for (const auto& [step, v] : s.points)  // tooltips with the numbers
      out += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"><title>{}: step {}, "
          "{:.5g}</title></circle>",
          axes.x(step), axes.y(v), s.color, s.label, step, v);
    legend += fmt::format("<span style=\"color:{}\">&#9644; {}</span> ", s.color, s.label);
  }
  return out + "</svg><p>" + legend + "</p>\n";
}

constexpr const char* kHead = R"(<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Weft training</title>
<style>
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 900px; margin: 2em auto; padding: 0 1em; }
svg { width: 100%; height: auto; } svg text { font-size: 11px; fill: currentColor; }
path { fill: none; stroke-width: 1.6; } .grid { stroke: #8884; }
circle { opacity: 0; } circle:hover { opacity: 1; }
td { padding: 0 1.5em 0 0; } pre { white-space: pre-wrap; background: #8882; padding: .7em; }
</style>
)";

}  // namespace

std::string History::page(const TrainSettings& settings) const {
  constexpr size_t kMost = 400;
  std::string out = kHead;
  out += fmt::format("<h1>Training, {} steps</h1>\n", losses_.empty() ? 0 : losses_.back().first);
  out += chart("Loss", {{"training", "#3b82f6", thinned(losses_, kMost)},
                        {"validation", "#f97316", thinned(validation_, kMost)}});
  out += chart("Learning rate", {{"rate", "#10b981", thinned(rates_, kMost)}});
  out += chart("Tokens a second", {{"tokens/s", "#8b5cf6", thinned(speeds_, kMost)}});
  if (!samples_.empty()) out += "<h2>Text made on the way</h2>\n";
  for (const auto& [step, text] : samples_)
    out += fmt::format("<p>after step {}</p><pre>{}</pre>\n", step, escaped(text));
  out += "<h2>Settings</h2><table>\n";
  const json all = settings_json(settings);
  for (const auto& [name, value] : all.items())
    out += fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", escaped(name), escaped(value.dump()));
  return out + "</table>\n</html>\n";
}

Status History::write_page(const TrainSettings& settings) const {
  return formats::write_file(page_path(), page(settings));
}

}  // namespace weft::nn
