#pragma once
#include "loops/form.h"

namespace weft::loops {

/// Operands that every form needs: present unless they may be `absent`, a known dtype, row-major, aligned to
/// their element, rank <= 8, and at most 2^31 - 1 elements (addresses in a text are 32 bits wide). Also the
/// operands of the steps of a body.
Status check_operands(const weft_call& call, bool absent = false);

/// check_operands, and what the device and the form allow: dtypes, binding size, determinism, accumulate,
/// overwriting.
Status check_common(const weft_call& call, const Form& form, const weft_capability& capability);

}  // namespace weft::loops
