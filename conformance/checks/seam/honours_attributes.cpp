#include "conformance/check.h"
#include "conformance/seam/usual.h"

namespace weft::conformance::checks::honours_attributes {
namespace {

void run(CheckRun& run) {
  Rig rig(run.backend());
  const auto x = counting({3, 3}), y = counting({3, 3}, 2), deep = counting({2, 3, 2});
  const auto index = array({2}, {1, 0}, DType::i32);
  const std::pair<const char*, Ask> all[] = {
      {"matmul transpose_b", {"matmul", {x, y}, {{"transpose_b", int64_t{1}}}}},
      {"matmul transpose_a", {"matmul", {x, y}, {{"transpose_a", int64_t{1}}}}},
      {"sum axes and keep", {"sum", {deep}, {{"axes", Shape{1}}, {"keep", int64_t{1}}}}},
      {"gather axis", {"gather", {x, index}, {{"axis", int64_t{1}}}}},
      {"slice start, step and stop",
       {"slice", {counting({9})}, {{"start", Shape{1}}, {"step", int64_t{3}}, {"stop", Shape{8}}}}},
      {"pad before, after and axis",
       {"pad", {x}, {{"axis", int64_t{1}}, {"before", Shape{2}}, {"after", Shape{1}}}}},
      {"concat axis", {"concat", {x, y}, {{"axis", int64_t{1}}}}},
      {"permute axes", {"permute", {deep}, {{"axes", Shape{2, 0, 1}}}}},
  };
  for (const auto& [name, ask] : all) run.run(name, [&] { return Found::wrong(differs(rig, ask, name)); });
}

}  // namespace

extern const Check check = {"honours_attributes",
                            "an attribute off its default changes the answer as it says", run};

}  // namespace weft::conformance::checks::honours_attributes
