#include "table.hpp"

// Has no device, and would be the default.
WEFT_TEST_PLUGIN("bad_ranked_provider");

weft_code weft_negotiate(const weft_host* host, const weft_backend** backend, weft_error* error) {
  (void)error;
  static weft_backend t = plugin::table<PluginName>(host);
  t.serves = "cpu", t.rank = 9;
  *backend = &t;
  return WEFT_OK;
}
