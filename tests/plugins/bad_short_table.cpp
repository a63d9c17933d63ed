#include "table.hpp"

// Ends before the required entries do.
WEFT_TEST_PLUGIN("bad_short_table");

weft_code weft_negotiate(const weft_host* host, const weft_backend** backend, weft_error* error) {
  (void)error;
  static weft_backend t = plugin::table<PluginName>(host);
  t.size = offsetof(weft_backend, copy);
  *backend = &t;
  return WEFT_OK;
}
