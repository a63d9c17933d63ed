#pragma once
#include "eager/call_cache.h"
#include "ir/op.h"
#include "weft/tensor.h"

// What happens off the hot path: a signature seen for the first time, an op without a kernel, a recording.
namespace weft::eager {

using Inputs = std::span<const Tensor* const>;

/// Infers the results and chooses: a kernel of `device`, the decomposition there, another device, or an error
/// that lists every refusal.
Result<CachedCall> resolve(const ir::OpDef& op, seam::Device& device, Inputs inputs,
                           std::span<const AttrValue> attrs, const Policy& policy);

void run_decomposition(const ir::OpDef& op, seam::Device& device, Inputs inputs,
                       std::span<const AttrValue> attrs, std::span<Tensor> outputs);
/// Copies the operands over, runs there, copies the results (and what was updated in place) back.
void run_elsewhere(const ir::OpDef& op, seam::Device& device, seam::Device& elsewhere, Inputs inputs,
                   std::span<const AttrValue> attrs, std::span<Tensor> outputs);
/// Adds a node to the thread's recording.
void record_node(const ir::OpDef& op, Inputs inputs, std::span<const AttrValue> attrs,
                 std::span<Tensor> outputs);

}  // namespace weft::eager
