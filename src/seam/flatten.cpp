#include "seam/flatten.h"

#include <algorithm>

namespace weft::seam {
namespace {

constexpr uint32_t kAbsent = UINT32_MAX;

class Flattening {
 public:
  explicit Flattening(const RegionDesc& region) {
    flat_.n_inputs = region.n_inputs;
    flat_.values.assign(region.values.begin(), region.values.begin() + region.n_inputs);
    std::vector<uint32_t> ids(region.n_inputs);
    for (uint32_t i = 0; i < region.n_inputs; ++i) ids[i] = i;
    flat_.outputs = add(region, std::move(ids));
  }
  RegionDesc take() { return std::move(flat_); }

 private:
  // Adds the steps of a body on these operands; returns its results. All are values of the flat body.
  std::vector<uint32_t> add(const RegionDesc& body, std::vector<uint32_t> ids) {
    ids.resize(body.values.size(), kAbsent);
    for (const StepDesc& step : body.steps) {
      std::vector<uint32_t> in, out;
      for (const uint32_t v : step.inputs) in.push_back(v == kAbsent ? kAbsent : ids[v]);
      if (step.call.region)
        out = add(*step.call.region, std::move(in));
      else
        out = add_primitive(step, std::move(in));
      for (size_t k = 0; k < out.size(); ++k) ids[step.outputs[k]] = out[k];
    }
    std::vector<uint32_t> results;
    for (const uint32_t v : body.outputs) results.push_back(ids[v]);
    return results;
  }
  std::vector<uint32_t> add_primitive(const StepDesc& step, std::vector<uint32_t> in) {
    std::vector<uint32_t> out;
    for (const ConcreteType& type : step.call.outputs) {
      out.push_back(static_cast<uint32_t>(flat_.values.size()));
      flat_.values.push_back(type);
    }
    flat_.steps.push_back({step.call, std::move(in), out});
    return out;
  }

  RegionDesc flat_;
};

}  // namespace

bool nests(const RegionDesc& region) {
  return std::ranges::any_of(region.steps, [](const StepDesc& s) { return s.call.region != nullptr; });
}

RegionDesc flatten(const RegionDesc& region) { return Flattening(region).take(); }

}  // namespace weft::seam
