#include "weft/sampling.h"

#include <algorithm>
#include <cmath>

#include "weft/random.h"

namespace weft::io {
namespace {

// The likelier one first; of equal ones the one with the lower id.
constexpr auto kLikelier = [](const auto& a, const auto& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
};
constexpr auto kLess = [](const auto& a, const auto& b) { return kLikelier(b, a); };

void check(const Sampling& how) {
  const auto wanted = [](bool holds, const char* name, const char* range, auto value) {
    if (!holds) throw Error(invalid("{} must be {}, got {}", name, range, value));
  };
  const auto part = [](double p) { return p >= 0 && p <= 1; };
  wanted(how.temperature >= 0 && std::isfinite(how.temperature), "temperature", "0 or more", how.temperature);
  wanted(how.top_k >= 0, "top_k", "0 or more", how.top_k);
  wanted(part(how.top_p), "top_p", "in [0, 1]", how.top_p);
  wanted(part(how.min_p), "min_p", "in [0, 1]", how.min_p);
  wanted(how.repetition_penalty > 0 && std::isfinite(how.repetition_penalty), "repetition_penalty", "above 0",
         how.repetition_penalty);
  for (const int32_t id : how.never) wanted(id >= 0, "a token that is never chosen", "0 or more", id);
}

void set(std::vector<bool>& bits, int32_t id) {
  const auto i = static_cast<size_t>(id);
  if (bits.size() <= i) bits.resize(i + 1);
  bits[i] = true;
}
bool has(const std::vector<bool>& bits, size_t i) { return i < bits.size() && bits[i]; }

}  // namespace

Sampler::Sampler(Sampling how) : how_(std::move(how)) {
  check(how_);
  for (const int32_t id : how_.never) set(never_, id);
}

void Sampler::mark(int32_t token) {
  if (token < 0) throw Error(invalid("a token must be 0 or more, got {}", token));
  if (how_.repetition_penalty != 1) set(seen_, token);
}
void Sampler::saw(std::span<const int32_t> tokens) {
  for (const int32_t id : tokens) mark(id);
}

void Sampler::gather(std::span<const float> scores) {
  candidates_.clear();
  candidates_.reserve(scores.size());
  if (how_.repetition_penalty != 1 && seen_.size() < scores.size()) seen_.resize(scores.size());
  for (size_t i = 0; i < scores.size(); ++i) {
    double s = double{scores[i]};
    if (std::isnan(s) || s == HUGE_VAL)
      throw Error(
          invalid("the score of token {} is {}: the model, or what it computes in, is at fault", i, s));
    if (s == -HUGE_VAL || has(never_, i)) continue;
    if (has(seen_, i)) s = s > 0 ? s / how_.repetition_penalty : s * how_.repetition_penalty;
    candidates_.push_back({s, 0, static_cast<int32_t>(i)});
  }
  if (candidates_.empty())
    throw Error(invalid("of {} scores none is left to choose a token by", scores.size()));
}

// Ties with the last one stay.
void Sampler::keep_top_k() {
  if (how_.top_k == 0 || static_cast<uint64_t>(how_.top_k) >= candidates_.size()) return;
  work_ = candidates_;
  const auto last = work_.begin() + static_cast<std::ptrdiff_t>(how_.top_k) - 1;
  std::nth_element(work_.begin(), last, work_.end(), [](auto& a, auto& b) { return a.score > b.score; });
  std::erase_if(candidates_, [least = last->score](auto& c) { return c.score < least; });
}

// Keeps candidates until they have the probability together. Taken from a heap, since they are few.
void Sampler::keep_top_p() {
  if (how_.top_p == 1) return;
  double left = 0;
  for (const auto& c : candidates_) left += c.weight;
  left *= how_.top_p;
  work_ = candidates_;
  std::make_heap(work_.begin(), work_.end(), kLess);
  auto end = work_.end();
  Candidate last{};
  do {
    std::pop_heap(work_.begin(), end, kLess);
    last = *--end;
    left -= last.weight;
  } while (left > 0 && end != work_.begin());
  std::erase_if(candidates_, [&](const auto& c) { return kLikelier(last, c); });
}

// The likeliest token where nothing changes the scores, without a list of candidates; -1 where gather() has
// something to say.
int32_t Sampler::likeliest(std::span<const float> scores) const {
  if (!takes_likeliest()) return -1;
  float best = -HUGE_VALF;
  bool finite = true;
  for (const float s : scores) {
    finite &= s < HUGE_VALF;  // false for a NaN, too
    best = s > best ? s : best;
  }
  if (!finite || best == -HUGE_VALF) return -1;
  return static_cast<int32_t>(std::ranges::find(scores, best) - scores.begin());
}

int32_t Sampler::pick(std::span<const float> scores) {
  if (const int32_t token = likeliest(scores); token >= 0) return token;
  gather(scores);
  work_.reserve(scores.size());
  const double best = std::ranges::max_element(candidates_, {}, &Candidate::score)->score;
  int32_t chosen = -1;
  if (how_.temperature == 0) {
    chosen = std::ranges::find(candidates_, best, &Candidate::score)->id;
  } else {
    keep_top_k();
    for (auto& c : candidates_) c.weight = std::exp((c.score - best) / how_.temperature);
    keep_top_p();
    std::erase_if(candidates_, [&](const auto& c) { return c.weight < how_.min_p; });  // the largest is 1
    double total = 0;
    for (const auto& c : candidates_) total += c.weight;
    double left = unit(random_word(how_.seed, drawn_++)) * total;
    // In the order of their ids: a rounding error of the scores moves the bounds only a little.
    size_t i = 0;
    while (i + 1 < candidates_.size() && left >= candidates_[i].weight) left -= candidates_[i++].weight;
    chosen = candidates_[i].id;
  }
  mark(chosen);
  return chosen;
}

StopStrings::StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {
  size_t longest = 0;
  for (const auto& s : stops_) {
    if (s.empty()) throw Error(invalid("a stop string must not be empty"));
    longest = std::max(longest, s.size());
  }
  held_.reserve(longest + 1024);  // so it rarely grows
}

std::string_view StopStrings::push(std::string_view part) {
  held_.erase(0, given_);
  given_ = 0;
  if (stopped_) return {};
  held_ += part;
  size_t begin = held_.size(), end = held_.npos;
  for (const auto& s : stops_)
    if (const size_t at = held_.find(s); at != held_.npos)
      if (at + s.size() < end || (at + s.size() == end && at < begin)) begin = at, end = at + s.size();
  if (end != held_.npos) {
    stopped_ = true;
    held_.resize(begin);
    return std::string_view(held_).substr(0, given_ = begin);
  }
  size_t open = 0;  // characters at the end that may begin a stop string
  for (const auto& s : stops_)
    for (size_t n = std::min(held_.size(), s.size() - 1); n > open; --n)
      if (held_.ends_with(std::string_view(s).substr(0, n))) open = n;
  return std::string_view(held_).substr(0, given_ = held_.size() - open);
}

std::string_view StopStrings::finish() {
  held_.erase(0, given_);
  given_ = held_.size();
  return held_;
}

}  // namespace weft::io
