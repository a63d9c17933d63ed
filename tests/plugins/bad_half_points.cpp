#include "table.hpp"

// Marks its queues, and lets nobody wait for a mark.
WEFT_TEST_PLUGIN("bad_half_points");

weft_code weft_negotiate(const weft_host* host, const weft_backend** backend, weft_error* error) {
  (void)error;
  static weft_backend t = plugin::table<PluginName>(host);
  t.mark = [](weft_queue, uint64_t* point, weft_error*) {
    *point = 1;
    return weft_code{WEFT_OK};
  };
  *backend = &t;
  return WEFT_OK;
}
