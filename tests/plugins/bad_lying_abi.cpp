#include "table.hpp"

// Answers yes, with a table of a version that this host does not speak.
WEFT_TEST_PLUGIN("bad_lying_abi");

weft_code weft_negotiate(const weft_host* host, const weft_backend** backend, weft_error* error) {
  (void)error;
  static weft_backend t = plugin::table<PluginName>(host);
  t.abi = 7;
  *backend = &t;
  return WEFT_OK;
}
