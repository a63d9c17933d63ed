#include "table.hpp"

// Is attached, and never told that it is not any more.
WEFT_TEST_PLUGIN("bad_half_provider");

weft_code weft_negotiate(const weft_host* host, const weft_backend** backend, weft_error* error) {
  (void)error;
  static weft_backend t = plugin::table<PluginName>(host);
  t.serves = "cpu";
  t.attach = [](const weft_backend*, weft_device, const weft_capability*, weft_error*) {
    return weft_code{WEFT_OK};
  };
  *backend = &t;
  return WEFT_OK;
}
