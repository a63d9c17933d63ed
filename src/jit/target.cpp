#include "jit/target.h"

#include "eager/describe.h"
#include "runtime/devices.h"
#include "seam/prepared_kernel.h"

namespace weft {

static bool has_kernel(seam::Device& device, const ir::OpDef& op, std::span<const TensorType* const> inputs,
                       std::span<const AttrValue> attrs) {
  std::vector<const weft_kernel*> own;
  for (const auto& source : device.sources)
    for (const weft_kernel* k : source.kernels)
      if (std::string_view(k->op) == op.name) own.push_back(k);
  if (own.empty()) return false;
  std::vector<TensorType> largest;
  for (const TensorType* t : inputs) {
    largest.push_back(t ? *t : TensorType());
    for (Dim& d : largest.back().shape) d = Dim(d.max());
  }
  std::vector<const TensorType*> in;
  for (size_t i = 0; i < inputs.size(); ++i) in.push_back(inputs[i] ? &largest[i] : nullptr);
  const auto out = op.infer(ir::Types(in), attrs);
  if (!out.ok()) return false;
  auto desc = eager::describe(op, in, out.value(), attrs);
  if (!desc.ok()) return false;
  const auto call = std::make_shared<const seam::OwnedCall>(std::move(desc).value());
  return std::ranges::any_of(own,
                             [&](const weft_kernel* k) { return seam::prepare_with(device, *k, call).ok(); });
}

compiler::HasKernel kernels_of(const std::string& backend) {
  return
      [devices = runtime::devices_for(backend, {})](
          const ir::OpDef& op, std::span<const TensorType* const> inputs, std::span<const AttrValue> attrs) {
        return devices.ok() && has_kernel(*devices.value().front(), op, inputs, attrs);
      };
}

}  // namespace weft
