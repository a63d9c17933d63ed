#include "conformance/cases.h"

namespace weft::conformance {

OpCases avg_pool_cases() {
  return {
      {.inputs = {normal({2, 3, 6})},
       .attrs = {{"kernel", Shape{2}}},
       .why = "one axis; the stride is the kernel"},
      {.inputs = {normal({1, 2, 5, 4})},
       .attrs = {{"kernel", Shape{3, 2}}, {"stride", Shape{2, 1}}},
       .why = "two axes, windows that overlap"},
      {.inputs = {normal({2, 5, 4})},
       .attrs = {{"kernel", Shape{3, 3}}, {"stride", Shape{2, 2}}, {"padding", Shape{1, 1, 0, 1}}},
       .why = "padding counts as zero"},
      {.inputs = {normal({2, 5, 4})},
       .attrs = {{"kernel", Shape{3, 3}},
                 {"stride", Shape{2, 2}},
                 {"padding", Shape{1, 1, 0, 1}},
                 {"count_include_pad", 0}},
       .why = "padding does not count"},
      {.inputs = {normal({2, 5, 6})},
       .attrs = {{"kernel", Shape{2, 3}}, {"stride", Shape{2, 2}}, {"ceil_mode", 1}},
       .why = "the last windows end outside, where nothing counts"},
      {.inputs = {normal({1, 6, 5})},
       .attrs = {{"kernel", Shape{3, 3}},
                 {"stride", Shape{2, 3}},
                 {"padding", Shape{1, 1, 1, 0}},
                 {"ceil_mode", 1}},
       .why = "padding counts, what lies beyond it does not"},
      {.inputs = {normal({1, 6, 5})},
       .attrs = {{"kernel", Shape{3, 3}},
                 {"stride", Shape{2, 3}},
                 {"padding", Shape{1, 1, 1, 0}},
                 {"count_include_pad", 0},
                 {"ceil_mode", 1}},
       .why = "neither counts"},
      {.inputs = {normal({4})}, .attrs = {{"kernel", Shape{4}}}, .why = "one window"},
      {.inputs = {normal({0, 4})}, .attrs = {{"kernel", Shape{2}}}, .why = "empty batch"},
      {.inputs = {integers({2, 6, 6}, -9, 9)},
       .attrs = {{"kernel", Shape{2, 2}}},
       .why = "small integers: exact"},
      {.inputs = {values({1, kInf, 2, 3, kNan, 5}, {1, 6})},
       .attrs = {{"kernel", Shape{2}}},
       .why = "infinities and NaN stay in their windows",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance
