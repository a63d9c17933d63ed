#pragma once
#include <span>
#include <vector>

#include "weft/backend.h"
#include "weft/status.h"

// What is built in: made from the folders under backends/ by the build, and the providers that serve any
// device.
namespace weft::seam {

struct Builtin {
  const char* name;
  weft_negotiate_fn negotiate;
};
std::span<const Builtin> builtin_backends();
/// A hash of the sources of all that is built in and runs calls: what was measured of others is out of date.
const char* builtin_contents();

/// A source of kernels for devices of any backend, as `loops` is. `kernels` is asked once for each opened
/// device; the records live until the process ends, and `backend` outlives them.
struct Provider {
  const char* name;
  std::vector<const weft_kernel*> (*kernels)(const weft_backend& backend, weft_device device,
                                             const weft_capability& capability, const weft_host& host);
  /// Between these, `prepare` may leave work for `end` to do all at once (seam::Together); on one thread.
  void (*begin_together)();
  Status (*end_together)();
};
std::span<const Provider> builtin_providers();

/// weft_host.render: the code generator, which backends reach through the host and never link.
decltype(weft_host::render) builtin_render();

}  // namespace weft::seam
