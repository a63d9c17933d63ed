#pragma once
#include <dlpack/dlpack.h>

#include "weft/tensor.h"

namespace weft {

/// A tensor on memory of another library: no element is copied, and each side sees the other's writes. Its
/// deleter is called once, on the thread that releases the last tensor on it, after all work enqueued on it
/// has run. The exporter has waited for its own work on it.
///
/// Shape    as the DLTensor's; strides may be any that are not negative. Kernels that want rows without gaps
///          are given a copy.
/// Dtype    any of Weft's, one lane.
/// Backend  where the tensor will be. Empty: the default backend, if it can reach the memory.
/// Errors   what can't be imported: a negative stride, elements at an odd address, memory that the backend
///          can't reach. The caller then owns `managed` still. An op that writes over an operand refuses a
///          tensor with strides.
Tensor from_dlpack(DLManagedTensor* managed, const std::string& backend = "");

/// Exports a tensor's memory to another library: no element is copied. Waits for the work on it. The memory
/// lives until the caller calls the result's deleter, after its own work on it is done.
///
/// Errors   an empty tensor, one inside a trace, one that requires a gradient (detach() it).
/// Source   DLPack, dmlc/dlpack, version 0.6.
DLManagedTensor* to_dlpack(const Tensor& tensor);

}  // namespace weft
