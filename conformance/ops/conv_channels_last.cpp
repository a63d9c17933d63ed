#include "conformance/cases.h"

namespace weft::conformance {

OpCases conv_channels_last_cases() {
  return {
      {.inputs = {normal({2, 6, 3}), normal({4, 3, 3})}, .why = "one axis"},
      {.inputs = {normal({2, 5, 4, 2}), normal({3, 2, 3, 2})}, .why = "two axes"},
      {.inputs = {normal({1, 3, 3, 4, 2}), normal({2, 2, 2, 2, 2})},
       .attrs = {{"padding", Shape{0, 1, 0, 0, 1, 0}}},
       .why = "three axes",
       .dtypes = kWideFloats},
      {.inputs = {normal({1, 7, 6, 4}), normal({4, 2, 3, 2})},
       .attrs = {{"stride", Shape{2, 3}},
                 {"padding", Shape{1, 2, 0, 1}},
                 {"dilation", Shape{2, 1}},
                 {"groups", 2}},
       .why = "strides that leave a rest, another padding on each side, groups"},
      {.inputs = {normal({1, 4, 4, 3}), normal({3, 1, 2, 2})}, .attrs = {{"groups", 3}}, .why = "depthwise"},
      {.inputs = {normal({2, 3, 3, 5}), normal({4, 5, 1, 1})}, .why = "1 x 1: a matrix product"},
      {.inputs = {normal({1, 40, 30, 16}), normal({20, 16, 3, 3})},
       .attrs = {{"padding", Shape{1, 1, 1, 1}}},
       .why = "rows enough for several threads",
       .dtypes = kWideFloats},
      {.inputs = {normal({1, 3, 2}), normal({2, 2, 2})},
       .attrs = {{"padding", Shape{3, 3}}},
       .why = "windows that see nothing but padding: zeros"},
      {.inputs = {normal({0, 5, 2}), normal({3, 2, 2})}, .why = "empty batch"},
      {.inputs = {normal({1, 4, 0}), normal({2, 0, 3})}, .why = "no channels to sum: zeros"},
      {.inputs = {integers({2, 5, 5, 4}, -9, 9), integers({4, 2, 3, 3}, -9, 9)},
       .attrs = {{"groups", 2}, {"stride", Shape{2, 2}}, {"padding", Shape{1, 1, 1, 1}}},
       .why = "small integers: exact"},
      {.inputs = {values({1, kNan, 2, 3, kInf}, {1, 5, 1}), values({0, 1}, {1, 1, 2})},
       .why = "a NaN stays in its windows",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance
