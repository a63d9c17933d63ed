#include "conformance/cases.h"

namespace weft::conformance {

OpCases reshape_cases() {
  return {
      {.inputs = {normal({4, 6})}, .attrs = {{"shape", Shape{2, 3, 4}}}, .why = "plain"},
      {.inputs = {normal({1, 1})}, .attrs = {{"shape", Shape{}}}, .why = "to rank 0"},
      {.inputs = {normal({})}, .attrs = {{"shape", Shape{1, 1, 1}}}, .why = "from rank 0"},
      {.inputs = {normal({0, 3})}, .attrs = {{"shape", Shape{5, 0}}}, .why = "empty"},
      {.inputs = {normal({4, 6})},
       .attrs = {{"shape", Shape{3, -1, 2}}},
       .why = "one size follows from the others"},
      {.inputs = {normal({0, 3})}, .attrs = {{"shape", Shape{-1, 3}}}, .why = "the size that follows is 0"},
      {.inputs = {values({kNan, -0.0L, kInf, 1e-40L})},
       .attrs = {{"shape", Shape{2, 2}}},
       .why = "bits stay",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance
