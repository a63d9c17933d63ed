#include "weft/backend.hpp"
#include "weft/shared/ops/gather.hpp"

// assign_rows: what scatter does, where its operand lies.
namespace weft::native {

extern const backend::KernelRecord assign_rows_rows = {
    .op = "assign_rows",
    .variant = "rows",
    .reads = {"axis", "batch"},
    .accepts =
        [](const backend::OpCall& c) { return shared::detail::accepts_scatter(c, shared::Kinds::all); },
    .launch = shared::detail::launch_scatter,
    .determinism = WEFT_DETERMINISM_DEVICES,
    .in_place = true,
};

}  // namespace weft::native
