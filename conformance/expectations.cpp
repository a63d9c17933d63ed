#include "conformance/expectations.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "base/file_to_read.h"

namespace weft::conformance {
namespace {

// Does `pattern`, in which * matches anything, match all of `text`?
bool matches(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = pattern.npos, after = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++, after = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p, ++t;
    } else if (star != pattern.npos) {
      p = star + 1, t = ++after;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// Columns are separated by at least two spaces, since names of cases contain single ones.
std::vector<std::string> columns(const std::string& line) {
  std::vector<std::string> out;
  for (size_t at = 0; at < line.size();) {
    const size_t gap = out.size() == 2 ? line.npos : line.find("  ", at);
    out.push_back(line.substr(at, gap == line.npos ? gap : gap - at));
    at = gap == line.npos ? line.size() : line.find_first_not_of(' ', gap);
  }
  return out;
}

}  // namespace

Result<Expectations> Expectations::read(const std::string& path) {
  WEFT_TRY(const auto file, FileToRead::open(path));
  WEFT_TRY(const auto bytes, file.read());
  std::istringstream in({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  Expectations all;
  all.path_ = path;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty() || line[0] == '#') continue;
    const auto c = columns(line);
    if (c.size() != 3 || (c[0] != "refused" && c[0] != "wrong"))
      return fail(
          Code::corrupt,
          "{}, line {}: wanted 'refused' or 'wrong', a pattern and words, two spaces between; got '{}'", path,
          number, line);
    all.lines_.push_back(
        {c[0] == "wrong" ? Found::State::failed : Found::State::refused, c[1], c[2], number});
  }
  all.matched_.resize(all.lines_.size());
  return all;
}

Found Expectations::judged(const CaseResult& r) {
  if (r.found.state == Found::State::skipped) return r.found;
  const std::string name = r.check + "/" + r.name;
  for (size_t i = 0; i < lines_.size(); ++i) {
    const auto& want = lines_[i];
    if (!matches(want.pattern, name)) continue;
    // If several lines match a case, one of them must be right.
    const bool as_said = r.found.state == want.state && (want.state == Found::State::failed ||
                                                         r.found.words.find(want.words) != std::string::npos);
    if (!as_said) continue;
    matched_[i] = true;
    return want.state == Found::State::failed ? Found::refused("known to be wrong: " + want.words) : r.found;
  }
  for (const auto& want : lines_)
    if (matches(want.pattern, name) && r.found.state == Found::State::passed)
      return Found::wrong(fmt::format("it passes, and {}, line {}, says that it is {}: take the line out",
                                      path_, want.line, conformance::name(want.state)));
  if (r.found.state == Found::State::refused)
    return Found::wrong(fmt::format("it is refused, and {} does not expect that: {}", path_, r.found.words));
  return r.found;
}

std::vector<Expectation> Expectations::unmatched() const {
  std::vector<Expectation> out;
  for (size_t i = 0; i < lines_.size(); ++i)
    if (!matched_[i]) out.push_back(lines_[i]);
  return out;
}

namespace {

/// "ops/add f32 [3]" with 1 word: "ops/add"; with 2: "ops/add f32"; with 0: all of it.
std::string beginning(const CaseResult& r, int words) {
  const std::string name = r.check + "/" + r.name;
  size_t at = words ? 0 : name.npos;
  for (int i = 0; i < words && at != name.npos; ++i) at = name.find(' ', at + (i > 0));
  return name.substr(0, at);
}

std::string in_common(const std::vector<const CaseResult*>& group) {
  std::string common = group[0]->found.words.substr(0, group[0]->found.words.find('\n'));
  for (const CaseResult* r : group) {
    const auto end =
        std::mismatch(common.begin(), common.end(), r->found.words.begin(), r->found.words.end());
    common.erase(end.first, common.end());
  }
  return common;
}

}  // namespace

std::string expectations_of(const std::vector<CaseResult>& results) {
  std::vector<const CaseResult*> left;
  for (const auto& r : results)
    if (r.found.state != Found::State::skipped) left.push_back(&r);
  std::string text;
  for (const int words : {1, 2, 0}) {
    std::map<std::string, std::vector<const CaseResult*>> groups;
    for (const CaseResult* r : left) groups[beginning(*r, words)].push_back(r);
    left.clear();
    for (const auto& [name, group] : groups) {
      const auto refused = [](const CaseResult* r) { return r->found.state == Found::State::refused; };
      const bool all = std::ranges::all_of(group, refused);
      const auto common = all ? in_common(group) : "";
      if (!common.empty())
        text += fmt::format("refused  {}{}  {}\n", name, words ? " *" : "", common);
      else if (std::ranges::any_of(group, refused))
        left.insert(left.end(), group.begin(), group.end());
    }
  }
  return text;
}

}  // namespace weft::conformance
