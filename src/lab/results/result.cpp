#include "lab/results/result.h"

#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>

#include "lab/kernels/call_json.h"
#include "lab/results/file.h"

namespace weft::lab {
namespace {

using nlohmann::json;

constexpr size_t kMostTurns = 400;  // that a row keeps: enough for a picture of their distribution

std::string date_of_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

json finite(double value) { return std::isfinite(value) ? json(value) : json(); }

// To four digits: no clock here is better, and files stay small.
double rounded(double value) { return std::stod(fmt::format("{:.4g}", value)); }

json thinned(const std::vector<double>& turns) {
  const size_t kept = std::min(turns.size(), kMostTurns);
  json sample = json::array();
  for (size_t i = 0; i < kept; ++i) sample.push_back(rounded(turns[i * turns.size() / kept]));
  return sample;
}

json to_json(const WorstElement& w) {
  json operands = json::array();
  for (const auto& o : w.operands) {
    json values = json::array();
    for (const double v : o.values) values.push_back(finite(v));
    operands.push_back({{"operand", o.operand}, {"at", o.at}, {"values", values}});
  }
  return {{"result", w.result},       {"at", w.at},          {"got", finite(w.got)}, {"want", finite(w.want)},
          {"bound", finite(w.bound)}, {"operands", operands}};
}

json to_json(const Accuracy& a) {
  return {{"elements", a.elements},
          {"max_abs", finite(a.max_abs)},
          {"max_rel", finite(a.max_rel)},
          {"l2", finite(a.l2)},
          {"share_of_bound", finite(a.share_of_bound)},
          {"ulps", a.ulps},
          {"nans", a.nans},
          {"infinities", a.infinities},
          {"worst", to_json(a.worst)}};
}

// What a row's times are compared with; zeros: unknown.
struct Limit {
  double copy = 0, peak = 0;
};
Limit limit_of(const Row& r, DType dtype, const Machine& m) {
  if (r.device.empty()) return m.limits ? Limit{m.limits->copy, m.limits->gigaflops} : Limit{};
  const auto device = m.device_limits.find(r.device);
  return device == m.device_limits.end() ? Limit{} : Limit{device->second.copy, device->second.peak(dtype)};
}

json to_json(const Row& r, const Work& work, const Limit& limit) {
  json out{{"contender", r.contender},
           {"kernel", r.kernel},
           {"identity", r.identity},
           {"verdict", name(r.verdict)},
           {"why", r.why},
           {"cases", r.cases},
           {"refused", r.refused},
           {"accuracy", to_json(r.accuracy)},
           {"compile_seconds", r.compile_seconds},
           {"open_seconds", r.open_seconds},
           {"peak_bytes", r.peak_bytes},
           {"device", r.device},
           {"turns", r.nanoseconds.size()}};
  if (r.nanoseconds.empty()) return out;
  const double median = quantile(r.nanoseconds, 0.5);
  out["nanoseconds"] = {{"median", median},
                        {"p10", quantile(r.nanoseconds, 0.1)},
                        {"p90", quantile(r.nanoseconds, 0.9)},
                        {"sample", thinned(r.nanoseconds)}};
  out["cpu_nanoseconds"] = r.cpu_nanoseconds;
  out["gigabytes_per_second"] = work.bytes / median, out["gigaflops"] = work.flops / median;
  if (limit.copy > 0) out["share_of_bandwidth"] = work.bytes / median / limit.copy;
  if (limit.peak > 0) out["share_of_peak"] = work.flops / median / limit.peak;
  if (!r.device.empty()) out["device_peak_bytes"] = r.device_peak_bytes;
  if (!r.clock.empty())
    out["clock"] = {{"p10", rounded(quantile(r.clock, 0.1))},
                    {"median", rounded(quantile(r.clock, 0.5))},
                    {"p90", rounded(quantile(r.clock, 0.9))}};
  if (!r.out() && std::isfinite(r.ratio.middle) && r.ratio.middle > 0)
    out["ratio"] = {{"low", r.ratio.low},
                    {"middle", r.ratio.middle},
                    {"high", r.ratio.high},
                    {"processes", r.process_ratios}};
  return out;
}

json to_json(const Machine& m) {
  json out{{"processor", m.processor},
           {"system", m.system},
           {"cores", m.cores},
           {"threads", m.threads},
           {"memory_bytes", m.memory_bytes},
           {"load", m.load},
           {"devices", m.devices},
           {"software", m.software}};
  if (m.limits)
    out["limits"] = {{"copy_gigabytes_per_second", m.limits->copy},
                     {"cached_copy_gigabytes_per_second", m.limits->cached_copy},
                     {"gigaflops", m.limits->gigaflops}};
  for (const auto& [device, limits] : m.device_limits)
    out["device_limits"][device] = {{"copy_gigabytes_per_second", limits.copy},
                                    {"gigaflops", limits.gigaflops},
                                    {"products", limits.products}};
  return out;
}

json to_json(const ContestOptions& o) {
  return {{"seconds", o.seconds}, {"margin", o.margin}, {"confidence", o.confidence},
          {"sample", o.sample},   {"cold", o.cold},     {"quick", o.quick},
          {"seed", o.seed}};
}

json to_json(const Operation& o) {
  json out = lab::to_json(ask_of(o));
  out["label"] = o.label(), out["where"] = o.where, out["dtype"] = name(o.dtype);
  return out;
}

}  // namespace

int status_of(Verdict verdict) {
  constexpr int kStatus[] = {0, 0, 3, 4, 5, 6};  // in the order of Verdict
  return kStatus[static_cast<size_t>(verdict)];
}

json result_of(const Comparison& c, const ContestOptions& options, const Setting& setting) {
  json rows = json::array();
  for (const Row& row : c.rows)
    rows.push_back(to_json(row, c.work, limit_of(row, c.operation.dtype, setting.machine)));
  return {{"schema", "weft.lab/1"},
          {"date", date_of_now()},
          {"weft", {{"version", setting.version}, {"commit", setting.commit}}},
          {"machine", to_json(setting.machine)},
          {"options", to_json(options)},
          {"operation", to_json(c.operation)},
          {"bytes", c.work.bytes},
          {"flops", c.work.flops},
          {"processes", c.processes},
          {"rows", rows}};
}

std::string result_line(const Comparison& c, const ContestOptions& options, const Setting& setting) {
  return line_of(result_of(c, options, setting));
}

}  // namespace weft::lab
