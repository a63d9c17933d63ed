#pragma once
#include <cstdint>
#include <string_view>

namespace weft {

/// What happens when the chosen device can't run an op, at load, linking and execution alike.
enum class Fallback : uint8_t {
  forbid,  ///< an error that lists every refusal
  warn,    ///< another device runs it, the copies are in the ledger, and the first time is logged
  allow,   ///< the same, without the log line
};

/// How kernels may be chosen. A call carries it; nothing here changes what an op means.
struct Policy {
  Fallback fallback = Fallback::forbid;
  bool decompose = true;    ///< may an op without a kernel run as its decomposition, on the same device?
  uint8_t determinism = 0;  ///< least level, WEFT_DETERMINISM_*
  uint8_t precision = 0;    ///< loosest mode, WEFT_PRECISION_*
  friend bool operator==(const Policy&, const Policy&) = default;
};

const char* name(Fallback fallback);

}  // namespace weft
