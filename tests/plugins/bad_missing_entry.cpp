#include "table.hpp"

// One required function is null.
WEFT_TEST_PLUGIN("bad_missing_entry");

weft_code weft_negotiate(const weft_host* host, const weft_backend** backend, weft_error* error) {
  (void)error;
  static weft_backend t = plugin::table<PluginName>(host);
  t.synchronize = nullptr;
  *backend = &t;
  return WEFT_OK;
}
