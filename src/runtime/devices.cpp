#include "runtime/devices.h"

#include "seam/choice.h"

namespace weft::runtime {

Result<std::vector<seam::Device*>> devices_for(const std::string& backend, const Policy& policy) {
  std::string names = !backend.empty() ? backend : seam::default_names();
  if (names.empty()) names = default_backend();
  WEFT_TRY(auto* first, seam::registry().open(names));
  std::vector<seam::Device*> out = {first};
  if (policy.fallback == Fallback::forbid) return out;
  const auto others = seam::registry().fallbacks(*first, names);
  out.insert(out.end(), others.begin(), others.end());
  return out;
}

}  // namespace weft::runtime
