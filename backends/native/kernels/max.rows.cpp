#include <cmath>

#include "backends/native/fold.h"
#include "backends/native/rows.h"

namespace weft::native {

using namespace weft::backend;

static Outcome launch(const Launch& l) { return fold(l, -HUGE_VALF, max, max, max_to); }

extern const KernelRecord max_rows = {.op = "max",
                                      .variant = "rows",
                                      .reads = {"axes", "keep"},
                                      .accepts = accepts_fold,
                                      .launch = launch,
                                      .determinism = WEFT_DETERMINISM_DEVICES};

}  // namespace weft::native
