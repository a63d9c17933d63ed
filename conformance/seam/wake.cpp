#include <set>

#include "conformance/liars/liar.h"
#include "seam/registry.h"

namespace weft::conformance {

static uint64_t seed = 1;
void seed_liars(uint64_t drawn) { seed = drawn; }
Random drawn_for(const std::string& liar) {
  return Random(seed * 0x9e3779b97f4a7c15 ^ std::hash<std::string>()(liar));
}

void wake(const Liar& liar) {
  static std::set<std::string> awake;
  if (!awake.insert(liar.name).second) return;
  adopt(*liar.make(liar.name, value_or_raise(seam::registry().open(liar.on))->backend()));
}

}  // namespace weft::conformance
