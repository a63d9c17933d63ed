#include "compiler/pattern.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace weft::compiler {
namespace {

struct Offer {
  const Pattern* from;
  Group group;
};

bool comes_first(const Offer& a, const Offer& b) {
  const auto &p = a.group.places, &q = b.group.places;
  if (p.front() != q.front()) return p.front() < q.front();
  if (p.size() != q.size()) return p.size() > q.size();
  return std::string_view(a.from->name) < b.from->name;
}

std::vector<Offer> offers_of(const Module& m, Claim claim) {
  std::vector<Offer> all;
  for (const Pattern* p : m.patterns)
    if (p->claim == claim)
      for (Group& group : p->find(m)) all.push_back({p, std::move(group)});
  std::ranges::sort(all, comes_first);
  return all;
}

void take(Module& m, Offer offer) {
  if (offer.from->claim == Claim::nodes)
    m.fusions.push_back({std::move(offer.group.name), std::move(offer.group.places)});
  else
    m.groups.push_back(std::move(offer.group));
}

// Takes what does not overlap, and asks again, until nothing is offered: each turn takes the first offer at
// least.
void settle(Module& m, Claim claim) {
  for (auto offers = offers_of(m, claim); !offers.empty(); offers = offers_of(m, claim)) {
    std::set<size_t> taken;
    for (Offer& offer : offers) {
      const auto& places = offer.group.places;
      if (std::ranges::any_of(places, [&](size_t place) { return taken.count(place) != 0; })) continue;
      taken.insert(places.begin(), places.end());
      take(m, std::move(offer));
    }
  }
}

}  // namespace

Status apply(const Pattern& pattern, Module& m, const Options& options) {
  if (!options.fuse) return {};
  m.patterns.push_back(&pattern);
  if (pattern.claim == Claim::nodes) m.fusions.clear();
  m.groups.clear();
  for (const Claim claim : {Claim::nodes, Claim::products, Claim::calls})
    settle(m, claim);  // each sees what the stronger claims took
  return {};
}

}  // namespace weft::compiler
