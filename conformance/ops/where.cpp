#include "conformance/cases.h"

namespace weft::conformance {

OpCases where_cases() {
  const auto condition = [](Dims shape) { return integers(std::move(shape), 0, 1).as(DType::boolean); };
  return {
      {.inputs = {condition({4, 33}), normal({4, 33}), normal({4, 33})}, .why = "same shapes"},
      {.inputs = {condition({3, 1}), normal({2, 1, 5}), normal({5})}, .why = "all three broadcast"},
      {.inputs = {condition({}), normal({3}), normal({})}, .why = "rank 0"},
      {.inputs = {condition({6}), normal({}), normal({6})}, .why = "a scalar choice"},
      {.inputs = {condition({0}), normal({1}), normal({0})}, .why = "empty"},
      {.inputs = {values({1, 0, 1, 0, 1, 0}).as(DType::boolean), values({kNan, kNan, -0.0L, 1, kInf, 2}),
                  values({1, -kInf, 5, -0.0L, kNan, 1e-40L})},
       .why = "what is not taken leaves no trace; bits stay",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance
