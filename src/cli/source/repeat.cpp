#include "cli/source/repeat.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/identical.h"

namespace weft::cli::source {
namespace {

constexpr size_t kFewest = 8;  // lines that a loop must save, or it is harder to read than they are

/// Where an operand comes from, seen from its round. Equal in every round, or there is no loop.
struct Origin {
  enum class Kind : uint8_t { absent, here, before, outside, counted, moving } kind;
  size_t line = 0, result = 0;  // of the round that made it: this one, or the one before
  Id outside = kNone;
  int64_t first = 0;  // counted: the number in the first round
  int64_t step = 0;   // counted: by how much it grows; moving: by how many lines its maker moves
  friend bool operator==(const Origin&, const Origin&) = default;
};

/// Names that are equal but for one number.
struct Counted {
  std::string before, after;
  int64_t number, step;  // in `a`, and how much more in `b`
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
  if (rest != rest_b || in_b == in_a) return std::nullopt;
  return Counted{a.substr(0, at), rest, in_a, in_b - in_a};
}

bool say_the_same(const Line& a, const Line& b) {
  if (a.op != b.op || a.inputs.size() != b.inputs.size() || a.outputs.size() != b.outputs.size())
    return false;
  for (size_t i = 0; i < a.attrs.size(); ++i)
    if (!identical(a.attrs[i], b.attrs[i])) return false;
  return true;
}

/// Are both lines the same one in rounds of one loop?
bool one_makes(const std::vector<Loop>& loops, size_t a, size_t b) {
  return std::ranges::any_of(loops, [&](const Loop& l) {
    return l.has(a) && l.has(b) && (a - l.begin) % l.period == (b - l.begin) % l.period;
  });
}

/// A loop that begins at a line, as far as it goes.
class Trial {
 public:
  Trial(const Listing& l, const std::vector<Loop>* known, size_t begin, size_t period)
      : l_(l), known_(known), begin_(begin), period_(period) {}

  /// At most `times` rounds; nothing if there are not two.
  std::optional<Loop> run(size_t times) {
    size_t rounds = 1;
    while (rounds < times && round_fits(rounds)) ++rounds;
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
    if (is.kind == Value::Kind::made && was.kind == Value::Kind::made) return moving(was, is);
    if (is.kind != Value::Kind::stored || was.kind != Value::Kind::stored) return std::nullopt;
    const auto n = counted(was.name, is.name);
    if (!n) return std::nullopt;
    return Origin{
        Origin::Kind::counted, 0, 0, kNone, n->number - n->step * static_cast<int64_t>(round - 1), n->step};
  }
  /// Of values that lines before the loop made: by rounds of a known one. Where none is known yet, that is
  /// seen later.
  std::optional<Origin> moving(const Value& was, const Value& is) const {
    if (was.line >= begin_ || is.line >= begin_ || was.result != is.result || was.line == is.line ||
        !say_the_same(l_.lines[was.line], l_.lines[is.line]))
      return std::nullopt;
    const auto step = static_cast<int64_t>(is.line) - static_cast<int64_t>(was.line);
    if (known_ && !one_makes(*known_, was.line, is.line)) return std::nullopt;
    return Origin{Origin::Kind::moving, 0, is.result, kNone, 0, step};
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

  Loop loop(size_t rounds) const {
    Loop out{.begin = begin_, .period = period_, .times = static_cast<int64_t>(rounds), .carried = carried_};
    bool numbered = false;  // the loop's variable is a number in a name
    for (size_t o = 0; o < period_; ++o) {
      auto& carries = out.carries.emplace_back();
      auto& moves = out.moves.emplace_back();
      for (size_t i = 0; i < line(0, o).inputs.size(); ++i) {
        const Origin& from = origins_[o][i];
        const Id id = line(0, o).inputs[i];
        carries.push_back(-1), moves.push_back(from.kind == Origin::Kind::moving ? from.step : 0);
        if (from.kind == Origin::Kind::before) {
          const Id made = line(0, from.line).outputs[from.result];
          carries.back() =
              static_cast<int>(std::ranges::find(carried_, made, &Carried::made) - carried_.begin());
        } else if (from.kind == Origin::Kind::counted) {
          const auto n = counted(l_.at(id).name, l_.at(line(1, o).inputs[i]).name);
          out.counted[id] = {n->before, n->after, n->number, n->step};
          if (!numbered && std::abs(n->step) == 1) numbered = true, out.from = n->number, out.step = n->step;
        }
      }
    }
    return out;
  }

  const Listing& l_;
  const std::vector<Loop>* const known_;
  const size_t begin_, period_;
  std::vector<std::vector<Origin>> origins_;
  std::vector<Carried> carried_;
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

void search(const Listing& l, const std::vector<Loop>* known, size_t begin, size_t end,
            std::vector<Loop>& out) {
  std::optional<Loop> best;
  for (const Candidate& c : candidates(l, begin, end)) {
    if (best && c.covers() < best->end() - best->begin) break;
    auto found = Trial(l, known, c.begin, c.period).run(c.times);
    if (found && found->end() - found->begin >= found->period + kFewest && (!best || better(*found, *best)))
      best = std::move(found);
  }
  if (!best) return;
  const size_t from = best->begin, to = best->end();
  search(l, known, begin, from, out);
  out.push_back(std::move(*best));
  search(l, known, to, end, out);
}

bool stands(const Listing& l, const std::vector<Loop>& loops, const Loop& loop) {
  for (size_t o = 0; o < loop.period; ++o)
    for (size_t i = 0; i < loop.moves[o].size(); ++i)
      if (const int64_t step = loop.moves[o][i]; step != 0) {
        const size_t first = l.at(l.lines[loop.begin + o].inputs[i]).line;
        for (const int64_t rounds : {int64_t{1}, loop.times - 1})
          if (!one_makes(loops, first, first + static_cast<size_t>(step * rounds))) return false;
      }
  return true;
}
/// Searches between the loops that are known.
std::vector<Loop> more_loops(const Listing& l, const std::vector<Loop>& known) {
  std::vector<Loop> more;
  size_t from = 0;
  for (const Loop& loop : known) search(l, &known, from, loop.begin, more), from = loop.end();
  search(l, &known, from, l.lines.size(), more);
  return more;
}

}  // namespace

std::string Loop::number_text(int64_t first, int64_t grows) const {
  const int64_t factor = grows * step, rest = first - factor * from;
  if (factor == 0) return fmt::format("{}", first);
  const std::string i = std::abs(factor) == 1 ? "i" : fmt::format("{} * i", std::abs(factor));
  if (factor < 0) return fmt::format("{} - {}", rest, i);
  return rest == 0 ? i : fmt::format("{} {} {}", i, rest < 0 ? "-" : "+", std::abs(rest));
}

std::vector<Loop> find_loops(const Listing& listing) {
  std::vector<Loop> loops;
  search(listing, nullptr, 0, listing.lines.size(), loops);
  const auto falls = [&](const Loop& l) { return !stands(listing, loops, l); };
  for (auto bad = std::ranges::find_if(loops, falls); bad != loops.end();
       bad = std::ranges::find_if(loops, falls))
    loops.erase(bad);
  for (auto more = more_loops(listing, loops); !more.empty(); more = more_loops(listing, loops)) {
    loops.insert(loops.end(), more.begin(), more.end());
    std::ranges::sort(loops, {}, &Loop::begin);
  }
  return loops;
}

}  // namespace weft::cli::source
