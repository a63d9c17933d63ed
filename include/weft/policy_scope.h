#pragma once
#include "weft/policy.h"

namespace weft {

/// While it lives, this thread's ops follow `policy`.
class PolicyScope {
 public:
  explicit PolicyScope(const Policy& policy);
  ~PolicyScope();
  PolicyScope(const PolicyScope&) = delete;

 private:
  Policy before_;
};
const Policy& current_policy();
/// This thread's ops follow `policy` from now on, until a PolicyScope that was there before ends.
void set_policy(const Policy& policy);

}  // namespace weft
