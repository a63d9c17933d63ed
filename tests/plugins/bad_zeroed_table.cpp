#include "table.hpp"

// Nothing was filled in.
WEFT_TEST_PLUGIN("bad_zeroed_table");

weft_code weft_negotiate(const weft_host* host, const weft_backend** backend, weft_error* error) {
  (void)host, (void)error;
  static const weft_backend t = {};
  *backend = &t;
  return WEFT_OK;
}
