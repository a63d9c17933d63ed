#include "conformance/cases.h"

namespace weft::conformance {

OpCases broadcast_cases() {
  return {
      {.inputs = {normal({3, 1})},
       .attrs = {{"shape", Shape{2, 3, 5}}},
       .why = "a new axis and a repeated one"},
      {.inputs = {normal({})}, .attrs = {{"shape", Shape{4, 3}}}, .why = "rank 0"},
      {.inputs = {normal({4, 3})}, .attrs = {{"shape", Shape{4, 3}}}, .why = "nothing to repeat"},
      {.inputs = {normal({1})}, .attrs = {{"shape", Shape{0, 3}}}, .why = "empty"},
      {.inputs = {values({kNan, -0.0L, -kInf}, {1, 3, 1})},
       .attrs = {{"shape", Shape{2, 3, 7}}},
       .why = "bits stay",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance
