#include "table.hpp"

// Says yes and gives nothing.
WEFT_TEST_PLUGIN("bad_no_table");

weft_code weft_negotiate(const weft_host* host, const weft_backend** backend, weft_error* error) {
  (void)host, (void)error;
  *backend = nullptr;
  return WEFT_OK;
}
