#include "backends/native/targets_of_rows.h"

// Each row of the result is (softmax(x) - one_hot(target)) * dloss / n, in one pass over the row; n is the
// number of rows that are not ignored, or 1 where they are summed. Ignored rows get zeros.
namespace weft::native {

using namespace weft::backend;

static Support accepts(const OpCall& c) { return accepts_slopes(c, 1); }
static Outcome launch(const Launch& l) { return slopes_of_rows(l, nullptr); }

extern const KernelRecord cross_entropy_grad_rows = {
    .op = "cross_entropy_grad",
    .variant = "rows",
    .reads = {"ignore_index", "summed"},
    .accepts = accepts,
    .launch = launch,
    .in_place = true,
};

}  // namespace weft::native
