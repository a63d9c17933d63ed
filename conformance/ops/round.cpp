#include "conformance/cases.h"

namespace weft::conformance {

OpCases round_cases() {
  return {
      {.inputs = {normal({4, 33})}, .why = "plain", .no_gradient = "jumps"},
      {.inputs = {uniform({65}, -9, 9)}, .why = "both signs", .no_gradient = "jumps"},
      {.inputs = {values({0.25L, -2.25L, 3.75L, 100.125L})}, .why = "inside a step"},
      {.inputs = {normal({})}, .why = "rank 0"},
      {.inputs = {normal({2, 0})}, .why = "empty"},
      {.inputs = {integers({17}, -20, 20)}, .why = "small integers: exact", .no_gradient = "jumps"},
      {.inputs = {values(
           {0.5L, 1.5L, -0.5L, -1.5L, 2.5L, 3.5L, -2.5L, 1e-40L, -1e-40L, 1025.5L, 4194304.5L, 1e30L})},
       .why = "ties go to the even one",
       .no_gradient = "jumps"},
      {.inputs = {values({0, -0.0L, kInf, -kInf, kNan, 1, -1, 1e-40L})},
       .why = "infinities stay",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance
