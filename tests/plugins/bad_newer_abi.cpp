#include "table.hpp"

// Built against a header of the future: says so, as a good citizen does.
WEFT_TEST_PLUGIN("bad_newer_abi");

weft_code weft_negotiate(const weft_host* host, const weft_backend** backend, weft_error* error) {
  if (host->abi_max >= 7) return WEFT_OK;
  *backend = nullptr;
  return weft::backend::fill(error, WEFT_VERSION, "built for ABI 7, the host speaks less");
}
