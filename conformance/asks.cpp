#include "conformance/asks.h"

#include <map>
#include <mutex>

#include "conformance/inputs.h"
#include "conformance/seam/candidates.h"

namespace weft::conformance {
namespace {

struct Drawn {
  std::vector<Input> inputs;
  std::vector<HostTensor> operands;
};

std::vector<HostTensor> draw_operands(const Case& c, DType t, uint64_t seed) {
  std::vector<HostTensor> operands;
  for (const Array& a : make_inputs(c, t, seed)) operands.push_back(host_tensor(a));
  return operands;
}

// Several checks ask for the same operands on every backend, and drawing them takes longer than the kernels
// do: the first megabytes of them are kept.
std::vector<HostTensor> drawn_operands(const char* op, const Case& c, DType t, uint64_t seed) {
  static std::mutex mutex;
  static std::map<std::string, Drawn> all;
  static size_t room = size_t{64} << 20;
  const std::lock_guard lock(mutex);
  const std::string label = fmt::format("{} {} {} {}", op, c.why, name(t), seed);
  const auto at = all.find(label);
  // Two cases may have the same label, so what they draw is compared too.
  if (at != all.end() && at->second.inputs == c.inputs) return at->second.operands;
  auto operands = draw_operands(c, t, seed);
  size_t bytes = 0;
  for (const HostTensor& x : operands) bytes += x.bytes.size();
  if (at == all.end() && bytes <= room) {
    room -= bytes;
    all.emplace(label, Drawn{c.inputs, operands});
  }
  return operands;
}

}  // namespace

std::vector<Ask> asks_of(const ir::OpDef& op, const OpCases& cases) {
  std::vector<Ask> all;
  uint64_t seed = 1;
  for (const Case& c : cases)
    for (int i = 0; i < (has_free_dtype(c) ? kDTypeCount : 1); ++i) {
      const auto t = static_cast<DType>(i);
      if (!holds(c.dtypes, t)) continue;
      Ask ask{.op = op.name, .attrs = c.attrs};
      ask.inputs = drawn_operands(op.name, c, t, ++seed);
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
