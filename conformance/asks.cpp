#include "conformance/asks.h"

#include "conformance/inputs.h"
#include "conformance/seam/candidates.h"

namespace weft::conformance {

std::vector<Ask> asks_of(const ir::OpDef& op, const OpCases& cases) {
  std::vector<Ask> all;
  uint64_t seed = 1;
  for (const Case& c : cases)
    for (int i = 0; i < (has_free_dtype(c) ? kDTypeCount : 1); ++i) {
      const auto t = static_cast<DType>(i);
      if (!holds(c.dtypes, t)) continue;
      Ask ask{.op = op.name, .attrs = c.attrs};
      for (const Array& a : make_inputs(c, t, ++seed)) ask.inputs.push_back(host_tensor(a));
      if (describe(ask).ok()) all.push_back(std::move(ask));
    }
  return all;
}

std::string judged(const PreparedCase& c, const Rig::Run& ran) {
  for (size_t k = 0; k < c.right.size(); ++k) {
    const auto& out = ran.outputs[k];
    const Array got = decode(out.type.dtype, Dims(out.type.shape.begin(), out.type.shape.end()), out.bytes);
    if (const auto v = judge(got, c.right[k]); !v.ok)
      return fmt::format("output {}: {}", c.op.outputs[k], v.reason);
  }
  return "";
}

}  // namespace weft::conformance
