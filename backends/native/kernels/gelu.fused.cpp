#include "backends/native/row_launch.h"
#include "backends/native/rows.h"

// In registers from x to y: the tile interpreter would pass a dozen steps through L1.
namespace weft::native {

using namespace weft::backend;

static Outcome launch(const Launch& l) {
  const bool approximate = l.call().attr("approximate").integer() != 0;
  const auto* x = l.input(0).data<float>();
  auto* y = l.output(0).data<float>();
  l.host().parallel_for(l.output(0).size(), 8192, [=](int64_t begin, int64_t end) {
    gelu(x + begin, approximate, y + begin, end - begin);
  });
  return Outcome::ok();
}

extern const KernelRecord gelu_fused = {.op = "gelu",
                                        .variant = "fused",
                                        .reads = {"approximate"},
                                        .accepts = [](const OpCall& c) { return accepts_alike(c, 1); },
                                        .launch = launch,
                                        .in_place = true};

}  // namespace weft::native
