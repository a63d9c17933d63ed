#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace weft {

/// One line of the ledger: launches of one kernel for one op on one device, or copies between two devices.
struct LedgerRow {
  std::string device;  ///< "opencl", or "opencl -> reference" for copies
  std::string op;      ///< "softmax", "copy"; "choice": of this device from a list of backends
  std::string kernel;  ///< "loops.region.elementwise"
  std::string why;     ///< kernels that were asked before and refused, and the reasons
  uint64_t calls = 0;
  uint64_t bytes = 0;      ///< moved between devices
  uint32_t precision = 0;  ///< WEFT_PRECISION_* that was used
};

/// All launches since the start or the last reset, in order of device, op and kernel.
std::vector<LedgerRow> ledger_rows();
void reset_ledger();
/// The rows as a table for people.
std::string ledger_text();

}  // namespace weft
