#include "weft/backend.hpp"
#include "weft/shared/ops/gather.hpp"

// assign_rows: what scatter does, where its operand lies. The cost is that of the rows.
namespace weft::native {

using namespace weft::backend;

static Support accepts(const OpCall& c) {
  if (c.n_inputs() != 3 || c.n_outputs() != 1) return Support::no("wants three operands and one result");
  const DType index = c.input(1).dtype();
  if (index != DType::i32 && index != DType::i64) return Support::no("index must be i32 or i64");
  if (c.updates() == 1 && c.raw()->update_inputs[0] == 0) return Support::yes();
  return Support::no("the result must be written over the first operand");
}

extern const KernelRecord assign_rows_rows = {
    .op = "assign_rows",
    .variant = "rows",
    .reads = {"axis", "batch"},
    .accepts = accepts,
    .launch = shared::detail::launch_scatter,
    .determinism = WEFT_DETERMINISM_DEVICES,
    .in_place = true,
};

}  // namespace weft::native
