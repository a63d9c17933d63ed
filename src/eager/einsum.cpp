#include "weft/einsum.h"

#include "eager/apply.h"
#include "ops/shared/einsum.h"

namespace weft {
namespace {

Tensor one_call(const std::string& equation, std::span<const Tensor> tensors) {
  const auto& op = *ir::find_op("einsum");
  std::vector<const Tensor*> in;
  for (const Tensor& t : tensors) in.push_back(&t);
  const AttrValue attrs[] = {equation};
  return eager::apply_one(op, in, attrs);
}

}  // namespace

Tensor einsum(const std::string& equation, const std::vector<Tensor>& tensors) {
  if (tensors.empty()) throw Error(invalid("einsum: wants one tensor or more"));
  if (tensors.size() <= ir::find_op("einsum")->n_inputs) return one_call(equation, tensors);
  std::vector<Shape> shapes;
  for (const Tensor& t : tensors) shapes.push_back(t.shape());
  std::vector<Tensor> values = tensors;
  for (const auto& step : ir::pairwise(value_or_raise(ir::parse_einsum(equation, shapes))))
    values.push_back(one_call(step.equation, std::array{values[step.a], values[step.b]}));
  return values.back();
}

}  // namespace weft
