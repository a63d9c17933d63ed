#include "../triton/provider.h"

// Kernels that are written in TileLang, without Python: compile.py has compiled them.
namespace weft::cubins {
namespace {

struct TileLang {
  static constexpr const char* kName = "tilelang";
};
using Table = backend::Provider<CubinProvider<TileLang>>;

}  // namespace

backend::Outcome stream_of(const backend::Launch& l, void** to) { return Table::stream(l, to); }

}  // namespace weft::cubins

weft_code WEFT_NEGOTIATE(const weft_host* host, const weft_backend** backend, weft_error* error) {
  return weft::cubins::Table::negotiate(host, backend, error);
}
