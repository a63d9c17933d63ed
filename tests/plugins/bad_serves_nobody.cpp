#include "table.hpp"

// Has a provider's entries, and does not say whom it serves.
WEFT_TEST_PLUGIN("bad_serves_nobody");

weft_code weft_negotiate(const weft_host* host, const weft_backend** backend, weft_error* error) {
  (void)error;
  static weft_backend t = plugin::table<PluginName>(host);
  t.attach = [](const weft_backend*, weft_device, const weft_capability*, weft_error*) {
    return weft_code{WEFT_OK};
  };
  t.detach = [](weft_device) {};
  *backend = &t;
  return WEFT_OK;
}
