#include "weft/policy.h"

namespace weft {

const char* name(Fallback fallback) {
  switch (fallback) {
    case Fallback::forbid: return "forbid";
    case Fallback::warn: return "warn";
    case Fallback::allow: return "allow";
  }
  return "unknown";
}

}  // namespace weft
