#include "table.hpp"

// Made with a header of the future of the same ABI: a longer table, whose tail the host does not know.
WEFT_TEST_PLUGIN("good_longer_table");

weft_code weft_negotiate(const weft_host* host, const weft_backend** backend, weft_error* error) {
  (void)error;
  static struct {
    weft_backend known;
    void (*future[40])();
  } t;
  t.known = plugin::table<PluginName>(host);
  t.known.size = sizeof t;
  for (auto& f : t.future) f = [] { __builtin_trap(); };
  *backend = &t.known;
  return WEFT_OK;
}
