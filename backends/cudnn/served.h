#pragma once
#include "plan.h"

// Kernels of this provider are graphs: a file of kernels/ says which one a call is.
namespace weft::cudnn {

/// The graph of a call, or why there is none. Sizes are known and not 0.
using Describe = backend::Support (*)(const backend::OpCall&, Graph&);

/// Opens cuDNN for the current device; `forget` ends what it keeps.
backend::Outcome remember_device();
void forget_device();

/// The plan of a call, from a cache of them by device, op, attributes, types and modes. Plans take
/// milliseconds where the engine is there, and seconds where cuDNN compiles it.
backend::Support plan_of(const backend::OpCall&, Describe, std::shared_ptr<const Plan>&);

backend::Outcome keep(const backend::OpCall&, Describe, weft_plan&);
void release(weft_plan*);
backend::Outcome launch(const backend::Launch&);

/// Fills in what all records share.
template <Describe describe>
backend::KernelRecord served(backend::KernelRecord record) {
  record.accepts = [](const backend::OpCall& c) {
    std::shared_ptr<const Plan> unused;
    return plan_of(c, describe, unused);
  };
  record.prepare = [](const backend::OpCall& c, weft_plan& plan) { return keep(c, describe, plan); };
  record.release = release;
  record.launch = launch;
  record.determinism = WEFT_DETERMINISM_RUN;
  return record;
}

}  // namespace weft::cudnn
