#include "runtime/devices.h"

namespace weft::runtime {

Result<std::vector<seam::Device*>> devices_for(const std::string& backend, const Policy& policy) {
  WEFT_TRY(auto* first, seam::registry().open(backend.empty() ? default_backend() : backend));
  std::vector<seam::Device*> out = {first};
  if (policy.fallback == Fallback::forbid) return out;
  const auto others = seam::registry().open_others(*first);
  out.insert(out.end(), others.begin(), others.end());
  return out;
}

}  // namespace weft::runtime
