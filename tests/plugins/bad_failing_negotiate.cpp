#include "table.hpp"

// Its library is not there, and it says which.
WEFT_TEST_PLUGIN("bad_failing_negotiate");

weft_code weft_negotiate(const weft_host* host, const weft_backend** backend, weft_error* error) {
  (void)host;
  *backend = nullptr;
  return weft::backend::fill(error, WEFT_UNAVAILABLE, "libvendor.so.9 was not found on this machine");
}
