#include "cli/source/repeat.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/identical.h"

namespace weft::cli::source {
namespace {

constexpr size_t kFewest = 8;  // lines that a loop must save, or it is harder to read than they are

/// Where an operand comes from, seen from its round. Equal in every round, or there is no loop.
struct Origin {
  enum class Kind : uint8_t { absent, here, before, outside, counted } kind;
  size_t line = 0, result = 0;  // of the round that made it: this one, or the one before
  Id outside = kNone;
  int64_t first = 0;  // counted: the number in the first round
  friend bool operator==(const Origin&, const Origin&) = default;
};

/// Names that are equal but for one number, which is larger by one in `b`.
struct Counted {
  std::string before, after;
  int64_t number;
};
std::optional<Counted> counted(const std::string& a, const std::string& b) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  auto at = static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  while (at > 0 && digit(a[at - 1])) --at;
  const auto read = [&](const std::string& s, int64_t& n) {
    const auto [stop, error] = std::from_chars(s.data() + at, s.data() + s.size(), n);
    return error == std::errc() ? s.substr(static_cast<size_t>(stop - s.data())) : std::string("-");
  };
  if (at >= a.size() || at >= b.size() || !digit(a[at]) || !digit(b[at])) return std::nullopt;
  int64_t in_a = 0, in_b = 0;
  const auto rest = read(a, in_a), rest_b = read(b, in_b);
  if (rest != rest_b || in_b != in_a + 1) return std::nullopt;
  return Counted{a.substr(0, at), rest, in_a};
}

bool say_the_same(const Line& a, const Line& b) {
  if (a.op != b.op || a.inputs.size() != b.inputs.size() || a.outputs.size() != b.outputs.size())
    return false;
  for (size_t i = 0; i < a.attrs.size(); ++i)
    if (!identical(a.attrs[i], b.attrs[i])) return false;
  return true;
}

/// A loop that begins at a line, as far as it goes.
class Trial {
 public:
  Trial(const Listing& l, size_t begin, size_t period) : l_(l), begin_(begin), period_(period) {}

  /// At most `times` rounds; nothing if there are not two.
  std::optional<Loop> run(size_t times) {
    size_t rounds = 1;
    while (rounds < times && round_fits(rounds)) ++rounds;
    while (rounds > 1 && escapes(rounds)) --rounds;
    if (rounds < 2) return std::nullopt;
    return loop(rounds);
  }

 private:
  const Line& line(size_t round, size_t o) const { return l_.lines[begin_ + round * period_ + o]; }
  bool made_in(const Value& v, size_t round) const {
    const size_t from = begin_ + round * period_;
    return v.kind == Value::Kind::made && v.line >= from && v.line < from + period_;
  }

  /// Of operand `i` of line `o` in `round` >= 1.
  std::optional<Origin> origin(size_t round, size_t o, size_t i) const {
    const Id a = line(round - 1, o).inputs[i], b = line(round, o).inputs[i];
    if (a == kNone || b == kNone) return a == b ? std::optional(Origin{Origin::Kind::absent}) : std::nullopt;
    const Value &was = l_.at(a), &is = l_.at(b);
    const size_t from = begin_ + round * period_;
    if (made_in(is, round)) {
      if (!made_in(was, round - 1) || was.line + period_ != is.line || was.result != is.result)
        return std::nullopt;
      return Origin{Origin::Kind::here, is.line - from, is.result};
    }
    if (made_in(is, round - 1)) {
      if (round == 1 ? made_in(was, 0) : !made_in(was, round - 2)) return std::nullopt;
      return Origin{Origin::Kind::before, is.line - (from - period_), is.result};
    }
    if (a == b) return Origin{Origin::Kind::outside, 0, 0, a};
    if (is.kind != Value::Kind::stored || was.kind != Value::Kind::stored) return std::nullopt;
    const auto n = counted(was.name, is.name);
    if (!n) return std::nullopt;
    return Origin{Origin::Kind::counted, 0, 0, kNone, n->number - static_cast<int64_t>(round - 1)};
  }

  /// The first round that is compared with the one before decides; later ones must agree with it.
  bool round_fits(size_t round) {
    origins_.resize(period_);
    for (size_t o = 0; o < period_; ++o)
      for (size_t i = 0; i < line(0, o).inputs.size(); ++i) {
        const auto found = origin(round, o, i);
        if (!found) return false;
        if (round > 1) {
          if (!(*found == origins_[o][i])) return false;
          continue;
        }
        if (found->kind == Origin::Kind::counted && number_.value_or(found->first) != found->first)
          return false;
        if (found->kind == Origin::Kind::counted) number_ = found->first;
        if (found->kind == Origin::Kind::before && !carry(*found, line(0, o).inputs[i])) return false;
        origins_[o].push_back(*found);
      }
    return true;
  }
  /// Two operands that carry one value begin with the same.
  bool carry(const Origin& from, Id first) {
    const Id made = line(0, from.line).outputs[from.result];
    for (const Carried& c : carried_)
      if (c.made == made) return c.first == first;
    carried_.push_back({first, made});
    return true;
  }

  /// Is a value of a round before the last one read behind the loop?
  bool escapes(size_t rounds) const {
    const size_t end = begin_ + rounds * period_;
    const auto inside = [&](Id id) {
      if (id == kNone) return false;
      const Value& v = l_.at(id);
      return v.kind == Value::Kind::made && v.line >= begin_ && v.line < end - period_;
    };
    for (size_t n = end; n < l_.lines.size(); ++n)
      if (std::ranges::any_of(l_.lines[n].inputs, inside)) return true;
    return std::ranges::any_of(l_.outputs, inside);
  }

  Loop loop(size_t rounds) const {
    Loop out{begin_, period_, static_cast<int64_t>(rounds), number_.value_or(0), carried_, {}, {}};
    for (size_t o = 0; o < period_; ++o) {
      auto& carries = out.carries.emplace_back();
      for (size_t i = 0; i < line(0, o).inputs.size(); ++i) {
        const Origin& from = origins_[o][i];
        const Id id = line(0, o).inputs[i];
        carries.push_back(-1);
        if (from.kind == Origin::Kind::before) {
          const Id made = line(0, from.line).outputs[from.result];
          carries.back() =
              static_cast<int>(std::ranges::find(carried_, made, &Carried::made) - carried_.begin());
        } else if (from.kind == Origin::Kind::counted) {
          const auto n = counted(l_.at(id).name, l_.at(line(1, o).inputs[i]).name);
          out.counted[id] = {n->before, n->after};
        }
      }
    }
    return out;
  }

  const Listing& l_;
  const size_t begin_, period_;
  std::vector<std::vector<Origin>> origins_;
  std::vector<Carried> carried_;
  std::optional<int64_t> number_;
};

struct Candidate {
  size_t begin, period, times;
  size_t covers() const { return period * times; }
};

/// What may be loops, judged by the lines alone, the largest first.
std::vector<Candidate> candidates(const Listing& l, size_t begin, size_t end) {
  std::vector<Candidate> all;
  for (size_t period = 2; period <= (end - begin) / 2; ++period) {
    size_t same = 0;  // lines from here on that stand again one period later
    for (size_t at = end - period; at-- > begin;) {
      same = say_the_same(l.lines[at], l.lines[at + period]) ? same + 1 : 0;
      const Candidate c{at, period, same / period + 1};
      if (c.times >= 2 && c.covers() >= period + kFewest) all.push_back(c);
    }
  }
  std::ranges::sort(all, std::greater(), &Candidate::covers);
  return all;
}

/// The one that covers more; then the one with shorter rounds, with fewer values from round to round, the
/// earlier one.
bool better(const Loop& a, const Loop& b) {
  const size_t covers_a = a.end() - a.begin, covers_b = b.end() - b.begin;
  if (covers_a != covers_b) return covers_a > covers_b;
  if (a.period != b.period) return a.period < b.period;
  if (a.carried.size() != b.carried.size()) return a.carried.size() < b.carried.size();
  return a.begin < b.begin;
}

void search(const Listing& l, size_t begin, size_t end, std::vector<Loop>& out) {
  std::optional<Loop> best;
  for (const Candidate& c : candidates(l, begin, end)) {
    if (best && c.covers() < best->end() - best->begin) break;
    auto found = Trial(l, c.begin, c.period).run(c.times);
    if (found && found->end() - found->begin >= found->period + kFewest && (!best || better(*found, *best)))
      best = std::move(found);
  }
  if (!best) return;
  const size_t from = best->begin, to = best->end();
  search(l, begin, from, out);
  out.push_back(std::move(*best));
  search(l, to, end, out);
}

}  // namespace

std::vector<Loop> find_loops(const Listing& listing) {
  std::vector<Loop> loops;
  search(listing, 0, listing.lines.size(), loops);
  return loops;
}

}  // namespace weft::cli::source
