#include "lab/kernels/provider.h"

namespace weft::lab {

Result<const Provider*> provider_of(const std::string& contender) {
  std::string known;
  for (const Provider* p : all_providers()) {
    if (p->takes(contender)) return p;
    known += fmt::format("\n  {}: {}", p->name, p->takes_what);
  }
  return invalid("nothing here provides a kernel '{}'; a contender is one of{}", contender, known);
}

}  // namespace weft::lab
