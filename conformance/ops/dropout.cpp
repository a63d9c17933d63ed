#include "conformance/cases.h"

namespace weft::conformance {

OpCases dropout_cases() {
  const auto state = [](Real key, Real counter) { return values({key, counter}).as(DType::u64); };
  return {
      {.inputs = {normal({4, 33}), state(99, 7)}, .why = "half"},
      {.inputs = {normal({5, 9}), state(99, 8)}, .attrs = {{"p", 0.1}}, .why = "few"},
      {.inputs = {normal({64}), state(1, 2)}, .attrs = {{"p", 0.0}}, .why = "none dropped"},
      {.inputs = {normal({64}), state(1, 2)}, .attrs = {{"p", 0.97}}, .why = "nearly all dropped"},
      {.inputs = {normal({}), state(5, 6)}, .attrs = {{"p", 0.3}}, .why = "rank 0"},
      {.inputs = {normal({0, 3}), state(5, 6)}, .why = "empty"},
      {.inputs = {values({kInf, kNan, -kInf, kInf, kNan, 1, -0.0L, 1e38L}), state(11, 0)},
       .why = "what is dropped is 0, whatever it was",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance
