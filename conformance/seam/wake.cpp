#include <set>

#include "conformance/liars/liar.h"
#include "seam/registry.h"

namespace weft::conformance {

void wake(const Liar& liar) {
  static std::set<std::string> awake;
  if (!awake.insert(liar.name).second) return;
  adopt(*liar.make(liar.name, value_or_raise(seam::registry().open(liar.on))->backend()));
}

}  // namespace weft::conformance
