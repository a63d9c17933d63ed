#include "table.hpp"

// Good but for its name, which another backend has.
WEFT_TEST_PLUGIN("bad_same_name");

weft_code weft_negotiate(const weft_host* host, const weft_backend** backend, weft_error* error) {
  (void)error;
  static weft_backend t = plugin::table<PluginName>(host);
  t.name = "reference";
  *backend = &t;
  return WEFT_OK;
}
