#include "conformance/cases.h"

namespace weft::conformance {

OpCases adaptive_avg_pool_cases() {
  return {
      {.inputs = {normal({2, 3, 6})}, .attrs = {{"size", Shape{3}}}, .why = "windows of equal length"},
      {.inputs = {normal({2, 7})}, .attrs = {{"size", Shape{3}}}, .why = "windows that overlap"},
      {.inputs = {normal({2, 5, 7})}, .attrs = {{"size", Shape{2, 4}}}, .why = "two axes"},
      {.inputs = {normal({2, 3, 2})}, .attrs = {{"size", Shape{5, 3}}}, .why = "more windows than elements"},
      {.inputs = {normal({3, 4, 5})}, .attrs = {{"size", Shape{1, 1}}}, .why = "the mean of all"},
      {.inputs = {normal({0, 4})}, .attrs = {{"size", Shape{2}}}, .why = "empty batch"},
      {.inputs = {values({1, kInf, 2, 3, kNan, 5}, {1, 6})},
       .attrs = {{"size", Shape{4}}},
       .why = "infinities and NaN stay in their windows",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance
