#include "loops/body.h"

#include <numeric>

namespace weft::loops {

Body::Body(const weft_call& c) : call(c) {
  if (const weft_region* r = c.region) {
    values.assign(r->values, r->values + r->n_values);
    for (uint32_t i = 0; i < r->n_steps; ++i)
      steps.push_back({r->steps[i]->call, r->steps[i]->inputs, r->steps[i]->outputs});
    outputs.assign(r->outputs, r->outputs + c.n_outputs);
  } else {
    values.assign(c.inputs, c.inputs + c.n_inputs);
    values.insert(values.end(), c.outputs, c.outputs + c.n_outputs);
    numbers_.resize(values.size());
    std::iota(numbers_.begin(), numbers_.end(), 0u);
    for (uint32_t k = 0; k < c.n_inputs; ++k)
      if (!c.inputs[k]) numbers_[k] = UINT32_MAX;
    steps.push_back({&c, numbers_.data(), numbers_.data() + c.n_inputs});
    for (uint32_t k = 0; k < c.n_outputs; ++k) outputs.push_back(c.n_inputs + k);
  }
  maker.assign(values.size(), -1);
  for (size_t i = 0; i < steps.size(); ++i)
    for (uint32_t k = 0; k < steps[i].call->n_outputs; ++k) maker[steps[i].out[k]] = static_cast<int32_t>(i);
}

}  // namespace weft::loops
