#include "seam/preference.h"

#include <charconv>
#include <cstdlib>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/input_file.h"
#include "base/log.h"
#include "base/thread_pool.h"
#include "seam/artefacts.h"
#include "seam/flatten.h"
#include "seam/registry.h"

namespace weft::seam {
namespace {

constexpr std::string_view kFirstLine = "weft measurements 1";
constexpr uint64_t kMostBytes =
    16 << 20;  // of a file; a program has some hundred calls of some hundred bytes

// What backends say of themselves may hold anything; a record is a line.
std::string on_one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ') c = '?';
  return text;
}

uint64_t number(std::string_view text, bool& good) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  good &= error == std::errc() && end == text.data() + text.size();
  return value;
}

// Six fields with tabs between, the call last.
std::optional<Measured> parse(std::string_view line) {
  std::string_view fields[6];
  for (auto& field : fields) {
    const size_t end = &field == &fields[5] ? line.size() : line.find('\t');
    if (end == line.npos || end == 0) return {};
    field = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  bool good = true;
  Measured m{.call = std::string(fields[5]),
             .kernel = std::string(fields[0]),
             .contents = std::string(fields[1]),
             .instead = std::string(fields[2]),
             .nanoseconds = number(fields[3], good),
             .nanoseconds_instead = number(fields[4], good)};
  if (!good || m.call.find_first_of("\t\r") != m.call.npos) return {};
  return m;
}

std::string line_of(const Measured& m) {
  return fmt::format("{}\t{}\t{}\t{}\t{}\t{}\n", m.kernel, m.contents, m.instead, m.nanoseconds,
                     m.nanoseconds_instead, m.call);
}

std::string cached(const std::string& key) {
  std::string text(1 << 16, '\0');
  uint64_t size = disk_get(key.c_str(), text.data(), text.size());
  if (size > text.size() && size <= kMostBytes) {
    text.resize(size);
    size = disk_get(key.c_str(), text.data(), text.size());
  }
  if (size > text.size()) return "";  // too large, or growing while it is read
  text.resize(size);
  return text;
}

bool switched_off() {
  const char* word = std::getenv("WEFT_MEASURED");
  return word && std::string_view(word) == "0";
}

constinit thread_local bool unmeasured = false;

void add(std::string& s, const ConcreteType& type) { s += text(type), s += ';'; }

void add(std::string& s, const CallDesc& call);

void add(std::string& s, const RegionDesc& region) {
  s += '{';
  for (const auto& type : region.values) add(s, type);
  s += fmt::format("{}:", region.n_inputs);
  for (const auto& step : region.steps) {
    add(s, step.call);
    for (const auto* list : {&step.inputs, &step.outputs}) {
      for (const uint32_t id : *list) s += fmt::format("{},", static_cast<int32_t>(id));
      s += '/';
    }
  }
  for (const uint32_t id : region.outputs) s += fmt::format("{},", id);
  s += '}';
}

void add(std::string& s, const CallDesc& call) {
  s += text(call);
  s += fmt::format(" v{} ->", call.version);
  for (const auto& type : call.outputs) s += ' ', add(s, type);
  for (const auto& name : call.off_default) s += " " + name;
  for (const auto& [output, input] : call.updates) s += fmt::format(" {}over{}", output, input);
  for (const auto& layout : call.layouts)
    if (layout)
      for (const int64_t stride : layout->strides) s += fmt::format(" s{}", stride);
}

}  // namespace

std::string measured_text(const std::string& machine, const MeasuredCalls& calls) {
  std::string text = fmt::format("{}\n{}\n", kFirstLine, machine);
  for (const auto& [call, m] : calls) text += line_of(m);
  return text;
}

MeasuredCalls read_measured(const std::string& text, const std::string& machine) {
  MeasuredCalls calls;
  size_t line_number = 0;
  for (size_t from = 0; from < text.size(); ++line_number) {
    const size_t end = text.find('\n', from);
    if (end == text.npos) return {};
    const std::string_view line(text.data() + from, end - from);
    from = end + 1;
    if (line_number < 2) {
      if (line != (line_number ? std::string_view(machine) : kFirstLine)) return {};
      continue;
    }
    auto m = parse(line);
    if (!m || !calls.emplace(m->call, *m).second) return {};
  }
  return measured_text(machine, calls) == text ? calls : MeasuredCalls();
}

// The body can be long: it is told by a hash, which a reader does not miss.
std::string signature(const CallDesc& call) {
  std::string s, body;
  add(s, call);
  if (call.region) {
    add(body, flatten(*call.region));
    const XXH128_hash_t h = XXH3_128bits(body.data(), body.size());
    s += fmt::format(" body {:016x}{:016x}", h.high64, h.low64);
  }
  for (const auto& constant : call.constants) s += fmt::format(" c{}", constant.input);
  s += fmt::format(" +{:x} d{} p{}", call.accumulate, call.determinism, call.precision);
  return on_one_line(std::move(s));  // attributes too: one call of its like is as good
}

std::string processor_name() {
  const std::string all = InputFile("/proc/cpuinfo").rest(1 << 16);
  for (size_t from = 0, end = 0; from < all.size(); from = end + 1) {
    end = std::min(all.find('\n', from), all.size());
    const std::string line = all.substr(from, end - from);
    if (!line.starts_with("model name")) continue;
    if (const size_t name = line.find_first_not_of(" \t", line.find(':') + 1); name != line.npos)
      return line.substr(name);
  }
  return "unknown processor";
}

std::string machine_of(const Device& device) {
  static const std::string cpu = processor_name();
  const auto& c = device.capability();
  return on_one_line(
      fmt::format("{}, {} threads; {} {}: {} {}, {}", cpu, thread_count(), device.backend().name,
                  device.backend().version ? device.backend().version : "", c.kind, c.label, c.numerics));
}

std::string preference_file(const Device& device) {
  const std::string machine = machine_of(device) + "\n" + device.name();
  std::string name = device.name();
  std::ranges::replace(name, ':', '_');
  return fmt::format("measured-{}-{:016x}", name, XXH3_64bits(machine.data(), machine.size()));
}

Preferences::Calls& Preferences::of(Device& device) {
  const std::pair at(device.index(), thread_count());
  if (const auto known = known_.find(at); known != known_.end()) return known->second;
  const std::string key = preference_file(device), text = cached(key);
  auto calls = read_measured(text, machine_of(device));
  if (!text.empty() && calls.empty())
    warn("{} in the cache folder is not what `weft tune` wrote on this machine; it is ignored", key);
  return known_[at] = std::move(calls);
}

std::optional<Measured> Preferences::find(Device& device, const CallDesc& call) {
  if (unmeasured || switched_off() || device.index() >= kMaxDevices) return {};
  const std::lock_guard lock(mutex_);
  const auto& calls = of(device);
  if (calls.empty()) return {};
  const auto at = calls.find(signature(call));
  return at == calls.end() ? std::nullopt : std::optional(at->second);
}

Status Preferences::keep(Device& device, std::span<const Measured> measured) {
  const std::string key = preference_file(device), machine = machine_of(device);
  const std::lock_guard lock(mutex_);
  auto& calls = of(device);
  for (auto& [call, m] : read_measured(cached(key), machine))
    calls.try_emplace(call, m);  // of processes since
  for (const auto& m : measured) calls.insert_or_assign(m.call, m);
  const std::string text = measured_text(machine, calls);
  disk_put(key.c_str(), text.data(), text.size());
  if (cached(key) != text)
    return fail(Code::io, "the cache folder can't be written; WEFT_CACHE_DIR names another");
  return {};
}

void Preferences::reload() {
  const std::lock_guard lock(mutex_);
  known_.clear();
}

Preferences& preferences() {
  static auto* one = new Preferences;
  return *one;
}

Unmeasured::Unmeasured() : before_(unmeasured) { unmeasured = true; }
Unmeasured::~Unmeasured() { unmeasured = before_; }

}  // namespace weft::seam
