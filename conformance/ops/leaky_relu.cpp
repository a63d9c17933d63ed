#include "conformance/cases.h"

namespace weft::conformance {

OpCases leaky_relu_cases() {
  return {
      {.inputs = {normal({4, 33})}, .why = "plain"},
      {.inputs = {normal({})}, .why = "rank 0"},
      {.inputs = {normal({2, 0})}, .why = "empty"},
      {.inputs = {normal({4, 33})}, .attrs = {{"slope", 0.25}}, .why = "a slope of its own"},
      {.inputs = {integers({17}, -9, 9)},
       .attrs = {{"slope", 0.5}},
       .why = "small integers: exact",
       .no_gradient = "kink at 0"},
      {.inputs = {normal({9})}, .attrs = {{"slope", -1.5}}, .why = "a slope below 0"},
      {.inputs = {values({0, -0.0L, kInf, -kInf, kNan, 1, -1, 1e-40L})},
       .why = "zeros and infinities",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance
