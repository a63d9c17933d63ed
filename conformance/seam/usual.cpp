#include "conformance/seam/usual.h"

#include <fmt/ranges.h>

#include "conformance/numbers.h"

namespace weft::conformance {

Finding differs(Rig& rig, seam::PreparedKernel& plan, const Ask& ask, const char* what) {
  Rig oracle("reference");
  auto got = rig.launch(plan, ask);
  const auto want = oracle.run(ask);
  if (!got.ok()) return fmt::format("{}: {}", what, got.status().message());
  if (!want.ok()) return fmt::format("{}: the oracle says {}", what, want.status().message());
  for (size_t k = 0; k < got->outputs.size(); ++k)
    if (got->outputs[k].bytes != want.value().outputs[k].bytes)
      return fmt::format("{} of {}: got {}, expected {}", what, ask.op,
                         fmt::join(numbers(got->outputs[k]), " "),
                         fmt::join(numbers(want.value().outputs[k]), " "));
  return {};
}

Finding differs(Rig& rig, const Ask& ask, const char* what) {
  const auto call = describe(ask);
  if (!call.ok()) return call.status().message();
  const auto plan = rig.plan(call.value());
  return plan.ok() ? differs(rig, *plan.value(), ask, what) : plan.status().message();
}

std::vector<Ask> usual_calls() {
  const auto x = counting({3, 5}), index = array({4}, {2, 0, 1, 2}, DType::i64);
  return {{"add", {x, counting({3, 5}, 4)}},
          {"mul", {x, counting({5}, 2)}},
          {"matmul", {x, counting({5, 7})}},
          {"sum", {x}, {{"axes", Shape{1}}}},
          {"max", {x}, {{"axes", Shape{0}}, {"keep", int64_t{1}}}},
          {"cast", {x}, {{"dtype", std::string("i32")}}},
          {"gather", {x, index}},
          {"where", {array({3, 5}, {1, 0, 1}, DType::boolean), x, counting({3, 5}, -3)}},
          {"pad", {x}, {{"axis", int64_t{1}}, {"before", Shape{2}}, {"after", Shape{1}}}},
          {"broadcast", {counting({5})}, {{"shape", Shape{3, 5}}}}};
}

HostTensor noise(IntList shape, uint64_t seed, DType dtype) {
  Random random(seed);
  std::vector<double> v(static_cast<size_t>(element_count(std::span<const int64_t>(shape))));
  for (double& x : v) x = random.normal();
  return array(std::move(shape), v, dtype);
}

std::string title(const Ask& ask) {
  std::string s = ask.op;
  for (size_t i = 0; i < ask.inputs.size(); ++i)
    s +=
        fmt::format("{}{}{}", i ? ", " : " ", name(ask.inputs[i].type.dtype), text(ask.inputs[i].type.shape));
  return s;
}

}  // namespace weft::conformance
