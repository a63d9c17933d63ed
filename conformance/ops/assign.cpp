#include "conformance/cases.h"

namespace weft::conformance {

OpCases assign_cases() {
  return {
      {.inputs = {normal({4, 5}), normal({4, 5})}, .why = "one dtype"},
      {.inputs = {normal({4, 5}), normal({4, 5}).as(DType::f64)}, .why = "from doubles"},
      {.inputs = {normal({33}), normal({33}).as(DType::bf16)}, .why = "from halves"},
      {.inputs = {normal({6}), integers({6}, -200, 200)}, .why = "small integers"},
      {.inputs = {normal({7}), values({kInf, -kInf, kNan, -0.0L, 1e38L, 0.5L, 2.5L}).as(DType::f32)},
       .why = "infinities and ties"},
      {.inputs = {normal({}), normal({}).as(DType::f32)}, .why = "rank 0"},
      {.inputs = {normal({0, 3}), normal({0, 3})}, .why = "empty"},
  };
}

}  // namespace weft::conformance
