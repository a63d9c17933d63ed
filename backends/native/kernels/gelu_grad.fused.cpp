#include "backends/native/row_launch.h"
#include "backends/native/rows.h"

namespace weft::native {

using namespace weft::backend;

static Outcome launch(const Launch& l) {
  const bool approximate = l.call().attr("approximate").integer() != 0;
  const auto *x = l.input(0).data<float>(), *dy = l.input(1).data<float>();
  auto* dx = l.output(0).data<float>();
  l.host().parallel_for(l.output(0).size(), 8192, [=](int64_t begin, int64_t end) {
    gelu_grad(x + begin, dy + begin, approximate, dx + begin, end - begin);
  });
  return Outcome::ok();
}

extern const KernelRecord gelu_grad_fused = {.op = "gelu_grad",
                                             .variant = "fused",
                                             .reads = {"approximate"},
                                             .accepts = [](const OpCall& c) { return accepts_alike(c, 2); },
                                             .launch = launch,
                                             .in_place = true};

}  // namespace weft::native
