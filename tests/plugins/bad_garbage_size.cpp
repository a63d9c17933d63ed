#include "table.hpp"

// A size that no table has: the memory behind it is not there.
WEFT_TEST_PLUGIN("bad_garbage_size");

weft_code weft_negotiate(const weft_host* host, const weft_backend** backend, weft_error* error) {
  (void)error;
  static weft_backend t = plugin::table<PluginName>(host);
  t.size = 0xdeadbeef;
  *backend = &t;
  return WEFT_OK;
}
