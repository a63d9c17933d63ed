#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <span>
#include <tuple>
#include <vector>

// In which order to contract many tensors, two at a time: labels and sizes only, no tensors. The same for an
// op's decomposition and for kernels that contract at once.
namespace weft::shared {

/// A set of labels 0..63.
using LabelSet = uint64_t;

/// The product of all operands, summed over the labels that `result` does not have.
struct Contraction {
  std::vector<LabelSet> operands;
  LabelSet result = 0;
  std::vector<double> sizes;  ///< by label
};

/// Contracts two values into a new one. Operands are values 0 to n - 1, step i makes value n + i.
struct ContractionStep {
  size_t a, b;
};
using ContractionPath = std::vector<ContractionStep>;

/// The labels that the product of values with the labels `a` and `b` keeps: those of the result and of
/// `others`.
inline LabelSet contracted(LabelSet a, LabelSet b, LabelSet others, LabelSet result) {
  return (a | b) & (others | result);
}

enum class PathSearch : uint8_t {
  automatic,  ///< optimal up to 6 operands, connected up to 14, greedy beyond
  optimal,    ///< least flops of all orders; greedy beyond 14 operands
  connected,  ///< fewest products, with outer products only between parts that share no summed label; same
              ///< limit
  greedy,     ///< always the pair that frees most memory
};

namespace detail {

inline constexpr size_t kMostOptimal = 6, kMostConnected = 14;
inline constexpr double kNever = std::numeric_limits<double>::infinity();

inline double volume(const Contraction& c, LabelSet labels) {
  double n = 1;
  for (; labels; labels &= labels - 1) n *= c.sizes[static_cast<size_t>(std::countr_zero(labels))];
  return n;
}

/// Every way to split every subset in two, for the subsets of `part`: 3^n steps. `outer` allows pairs without
/// a common summed label and counts flops; otherwise products count.
class Subsets {
 public:
  using Mask = uint32_t;
  Subsets(const Contraction& c, std::vector<size_t> part, bool outer)
      : c_(c), part_(std::move(part)), outer_(outer), best_(size_t{1} << part_.size()) {
    LabelSet elsewhere = c.result;
    for (size_t i = 0; i < c.operands.size(); ++i)
      if (std::find(part_.begin(), part_.end(), i) == part_.end()) elsewhere |= c.operands[i];
    const Mask all = static_cast<Mask>(best_.size() - 1);
    std::vector<LabelSet> labels(best_.size(), 0);
    for (Mask s = 1; s <= all; ++s)
      labels[s] = labels[s & (s - 1)] | c.operands[part_[static_cast<size_t>(std::countr_zero(s))]];
    for (Mask s = 1; s <= all; ++s) {
      const LabelSet keep = elsewhere | labels[all & ~s];
      const bool one = (s & (s - 1)) == 0;
      best_[s].labels = one ? labels[s] : labels[s] & keep;
      best_[s].cost = one ? 0 : kNever;
      for (Mask a = (s - 1) & s; a > (s & ~a); a = (a - 1) & s) consider(s, a, keep);
    }
  }

  /// Appends the steps of the whole part; gives the value that they end in.
  size_t append(ContractionPath& path) const { return append(path, static_cast<Mask>(best_.size() - 1)); }
  double size() const { return volume(c_, best_.back().labels); }

 private:
  struct Best {
    LabelSet labels = 0;
    double cost = kNever;
    Mask first = 0;
  };

  void consider(Mask s, Mask a, LabelSet keep) {
    const Best &x = best_[a], &y = best_[s & ~a];
    const LabelSet common = x.labels & y.labels;
    if (!outer_ && (common & ~c_.result) == 0) return;
    const double products = volume(c_, x.labels | y.labels);
    const double cost = x.cost + y.cost + products * (outer_ && (common & ~keep) ? 2 : 1);
    if (cost < best_[s].cost) best_[s].cost = cost, best_[s].first = a;
  }

  size_t append(ContractionPath& path, Mask s) const {
    if ((s & (s - 1)) == 0) return part_[static_cast<size_t>(std::countr_zero(s))];
    const size_t a = append(path, best_[s].first), b = append(path, s & ~best_[s].first);
    path.push_back({std::min(a, b), std::max(a, b)});
    return c_.operands.size() + path.size() - 1;
  }

  const Contraction& c_;
  std::vector<size_t> part_;
  bool outer_;
  std::vector<Best> best_;
};

/// Without the labels that one operand alone has: they are summed before anything else.
inline Contraction reduced(Contraction c) {
  LabelSet once = 0, twice = c.result;
  for (const LabelSet o : c.operands) twice |= once & o, once |= o;
  for (LabelSet& o : c.operands) o &= twice;
  return c;
}

/// Operands that hang together by summed labels, from each other and in the order of their first one.
inline std::vector<std::vector<size_t>> connected_parts(const Contraction& c) {
  std::vector<std::vector<size_t>> parts;
  std::vector<bool> taken(c.operands.size(), false);
  for (size_t first = 0; first < c.operands.size(); ++first) {
    if (taken[first]) continue;
    std::vector<size_t> part = {first};
    taken[first] = true;
    for (size_t at = 0; at < part.size(); ++at)
      for (size_t i = 0; i < c.operands.size(); ++i)
        if (!taken[i] && (c.operands[part[at]] & c.operands[i] & ~c.result))
          taken[i] = true, part.push_back(i);
    parts.push_back(std::move(part));
  }
  return parts;
}

inline ContractionPath best_path(const Contraction& c, bool outer) {
  ContractionPath path;
  if (outer) {
    std::vector<size_t> all(c.operands.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    Subsets(c, all, true).append(path);
    return path;
  }
  const Contraction r = reduced(c);
  std::vector<std::pair<double, size_t>> values;  // of the parts, smallest first
  for (const auto& part : connected_parts(r)) {
    const Subsets best(r, part, false);
    values.emplace_back(best.size(), best.append(path));
  }
  std::stable_sort(values.begin(), values.end(), [](auto& a, auto& b) { return a.first < b.first; });
  for (size_t i = 1; i < values.size(); ++i) {
    path.push_back({values[i - 1].second, values[i].second});
    values[i].second = c.operands.size() + path.size() - 1;
  }
  return path;
}

/// Values of equal labels become one at once, so a set of labels names a value. Pairs wait in a queue, those
/// that free most memory first; a pair is passed over when one of its values is gone.
class Greedy {
 public:
  explicit Greedy(const Contraction& c) : c_(c), result_(c.result), next_(c.operands.size()) {
    LabelSet common = ~LabelSet{0};
    for (const LabelSet o : c.operands) common &= o;
    result_ |= common;  // what all have can only be summed at the very end
    for (size_t i = 0; i < c.operands.size(); ++i) enter(c.operands[i], i);
  }

  ContractionPath run() {
    for (LabelSet open = summed(); open; open &= open - 1) {
      const auto holders = sorted_holders(open & (~open + 1));
      for (size_t i = 0; i + 1 < holders.size(); ++i) offer(holders[i], std::span(holders).subspan(i + 1));
    }
    while (!queue_.empty()) {
      const Pair p = queue_.top();
      queue_.pop();
      if (values_.contains(p.a) && values_.contains(p.b)) contract(p);
    }
    multiply_rest();
    return std::move(path_);
  }

 private:
  struct Pair {
    double cost;
    size_t later, earlier;  // values: ties go to the older ones
    LabelSet a, b, product;
    bool operator<(const Pair& o) const {
      return std::tie(cost, later, earlier) > std::tie(o.cost, o.later, o.earlier);
    }
  };

  LabelSet summed() const {
    LabelSet all = 0;
    for (const auto& [labels, value] : values_) all |= labels;
    return all & ~result_;
  }
  std::vector<LabelSet> sorted_holders(LabelSet any) const {
    std::vector<LabelSet> all;
    for (const auto& [labels, value] : values_)
      if (labels & any) all.push_back(labels);
    std::sort(all.begin(), all.end(), [&](LabelSet a, LabelSet b) { return values_.at(a) < values_.at(b); });
    return all;
  }
  size_t step(size_t a, size_t b) {
    path_.push_back({std::min(a, b), std::max(a, b)});
    return next_++;
  }
  void enter(LabelSet labels, size_t value) {
    const auto [at, fresh] = values_.try_emplace(labels, value);
    if (!fresh) at->second = step(at->second, value);
  }

  /// The best pair of `a` with one of the others, if there is one.
  void offer(LabelSet a, std::span<const LabelSet> others) {
    Pair best{kNever, 0, 0, 0, 0, 0};
    for (const LabelSet b : others) {
      const size_t va = values_.at(a), vb = values_.at(b);
      LabelSet elsewhere = 0;
      for (const auto& [labels, value] : values_)
        if (labels != a && labels != b) elsewhere |= labels;
      const LabelSet product = contracted(a, b, elsewhere, result_);
      const Pair p{volume(c_, product) - (volume(c_, a) + volume(c_, b)),
                   std::max(va, vb),
                   std::min(va, vb),
                   a,
                   b,
                   product};
      if (best.cost == kNever || best < p) best = p;
    }
    if (best.cost != kNever) queue_.push(best);
  }

  void contract(const Pair& p) {
    const size_t a = values_.at(p.a), b = values_.at(p.b);
    values_.erase(p.a), values_.erase(p.b);
    enter(p.product, step(a, b));
    std::vector<LabelSet> partners = sorted_holders(p.product & ~result_);
    std::erase(partners, p.product);
    offer(p.product, partners);
  }

  /// Nothing that is left shares a summed label: outer products, smallest first.
  void multiply_rest() {
    std::set<std::tuple<double, size_t, LabelSet>> rest;
    for (const auto& [labels, value] : values_) rest.emplace(volume(c_, labels & result_), value, labels);
    while (rest.size() > 1) {
      const auto [size_a, a, labels_a] = rest.extract(rest.begin()).value();
      const auto [size_b, b, labels_b] = rest.extract(rest.begin()).value();
      const LabelSet product = (labels_a | labels_b) & result_;
      rest.emplace(volume(c_, product), step(a, b), product);
    }
  }

  const Contraction& c_;
  LabelSet result_;
  size_t next_;
  std::map<LabelSet, size_t> values_;
  std::priority_queue<Pair> queue_;
  ContractionPath path_;
};

}  // namespace detail

inline ContractionPath find_path(const Contraction& c, PathSearch search = PathSearch::automatic) {
  const size_t n = c.operands.size();
  if (n < 2) return {};
  if (search == PathSearch::automatic)
    search = n <= detail::kMostOptimal ? PathSearch::optimal : PathSearch::connected;
  if (search == PathSearch::greedy || n > detail::kMostConnected) return detail::Greedy(c).run();
  return detail::best_path(c, search == PathSearch::optimal);
}

/// What a path costs. A step visits the product of all sizes of its two values; that many multiplications,
/// and as many additions where a label that both have is summed.
struct PathCost {
  double flops = 0;
  double products = 0;  ///< multiplications alone, labels that only one operand has being summed before
};
inline PathCost cost_of(const Contraction& c, const ContractionPath& path) {
  PathCost cost;
  const auto walk = [&](const Contraction& from, auto visit) {
    std::vector<LabelSet> values = from.operands;
    std::vector<bool> left(values.size(), true);
    for (const auto& [a, b] : path) {
      left[a] = left[b] = false;
      LabelSet others = 0;
      for (size_t i = 0; i < values.size(); ++i) others |= left[i] ? values[i] : 0;
      visit(values[a], values[b], others | c.result);
      values.push_back(contracted(values[a], values[b], others, c.result));
      left.push_back(true);
    }
  };
  walk(c, [&](LabelSet a, LabelSet b, LabelSet keep) {
    cost.flops += detail::volume(c, a | b) * (a & b & ~keep ? 2 : 1);
  });
  walk(detail::reduced(c),
       [&](LabelSet a, LabelSet b, LabelSet) { cost.products += detail::volume(c, a | b); });
  return cost;
}

}  // namespace weft::shared
