#include "conformance/cases.h"

namespace weft::conformance {

OpCases clamp_cases() {
  return {
      {.inputs = {normal({4, 33})}, .attrs = {{"min", -0.5}, {"max", 1.25}}, .why = "both bounds"},
      {.inputs = {normal({4, 33})}, .attrs = {{"min", 0.1}}, .why = "from below"},
      {.inputs = {normal({4, 33})}, .attrs = {{"max", 2.0}}, .why = "from above"},
      {.inputs = {normal({7})}, .why = "unbounded"},
      {.inputs = {normal({})}, .attrs = {{"min", 0.0}}, .why = "rank 0"},
      {.inputs = {normal({0})}, .attrs = {{"min", 0.0}}, .why = "empty"},
      {.inputs = {integers({17}, -9, 9)},
       .attrs = {{"min", -3.0}, {"max", 4.0}},
       .why = "small integers: exact; bounds that are hit",
       .no_gradient = "kinks"},
      {.inputs = {normal({5})},
       .attrs = {{"min", 2.0}, {"max", 1.0}},
       .why = "bounds that cross: all of it is max",
       .no_gradient = "kinks"},
      {.inputs = {values({0, -0.0L, kInf, -kInf, kNan, 1, -1, 1e-40L})},
       .attrs = {{"min", -2.0}, {"max", 2.0}},
       .why = "a NaN stays",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance
