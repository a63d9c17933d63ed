#include "conformance/cases.h"

namespace weft::conformance {

OpCases max_pool_cases() {
  return {
      {.inputs = {normal({2, 3, 6})},
       .attrs = {{"kernel", Shape{2}}},
       .why = "one axis; the stride is the kernel"},
      {.inputs = {normal({1, 2, 5, 4})},
       .attrs = {{"kernel", Shape{3, 2}}, {"stride", Shape{2, 1}}},
       .why = "two axes, windows that overlap"},
      {.inputs = {normal({2, 5, 4})},
       .attrs = {{"kernel", Shape{3, 3}}, {"stride", Shape{2, 2}}, {"padding", Shape{1, 1, 0, 1}}},
       .why = "padding never wins"},
      {.inputs = {normal({2, 7})},
       .attrs = {{"kernel", Shape{3}}, {"dilation", Shape{2}}, {"stride", Shape{1}}},
       .why = "dilated"},
      {.inputs = {normal({2, 5, 6})},
       .attrs = {{"kernel", Shape{2, 3}}, {"stride", Shape{2, 2}}, {"ceil_mode", 1}},
       .why = "the last windows end outside"},
      {.inputs = {normal({1, 5, 5})},
       .attrs = {{"kernel", Shape{2, 2}},
                 {"stride", Shape{2, 4}},
                 {"padding", Shape{1, 1, 0, 1}},
                 {"ceil_mode", 1}},
       .why = "a last window would begin in the padding: it is left out"},
      {.inputs = {normal({2, 3})},
       .attrs = {{"kernel", Shape{5}}, {"stride", Shape{4}}, {"ceil_mode", 1}},
       .why = "one window, wider than the axis"},
      {.inputs = {normal({4})}, .attrs = {{"kernel", Shape{4}}}, .why = "one window"},
      {.inputs = {normal({0, 4})}, .attrs = {{"kernel", Shape{2}}}, .why = "empty batch"},
      {.inputs = {integers({2, 6, 6}, -9, 9)},
       .attrs = {{"kernel", Shape{2, 3}}},
       .why = "small integers: exact",
       .no_gradient = "ties: kinks"},
      {.inputs = {values({1, kInf, -kInf, -kInf, kNan, 5, -2, -1}, {1, 8})},
       .attrs = {{"kernel", Shape{2}}},
       .why = "infinities and NaN",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance
