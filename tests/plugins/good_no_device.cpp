#include "table.hpp"

// Loads, and finds no device: unavailable, not refused.
WEFT_TEST_PLUGIN("good_no_device");

weft_code weft_negotiate(const weft_host* host, const weft_backend** backend, weft_error* error) {
  (void)error;
  static weft_backend t = plugin::table<PluginName>(host);
  t.probe = [](weft_probe* p, weft_error*) {
    weft::backend::write(p, &weft_probe::n_devices, 0);
    weft::backend::write_text(p, &weft_probe::reason, "no such chip in this machine");
    return weft_code{WEFT_OK};
  };
  *backend = &t;
  return WEFT_OK;
}
