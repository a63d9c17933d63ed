#include "provider.h"

// Kernels that are written in Triton, without Python: compile.py has compiled them.
namespace weft::cubins {
namespace {

struct Triton {
  static constexpr const char* kName = "triton";
};
using Table = backend::Provider<CubinProvider<Triton>>;

}  // namespace

backend::Outcome stream_of(const backend::Launch& l, void** to) { return Table::stream(l, to); }

}  // namespace weft::cubins

weft_code WEFT_NEGOTIATE(const weft_host* host, const weft_backend** backend, weft_error* error) {
  return weft::cubins::Table::negotiate(host, backend, error);
}
