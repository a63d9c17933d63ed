#include "conformance/cases.h"

namespace weft::conformance {

OpCases conv_transpose_cases() {
  return {
      {.inputs = {normal({2, 3, 4}), normal({3, 2, 3})}, .why = "one axis"},
      {.inputs = {normal({2, 2, 3, 4}), normal({2, 3, 3, 2})}, .why = "two axes"},
      {.inputs = {normal({1, 2, 2, 3, 2}), normal({2, 2, 2, 1, 2})},
       .attrs = {{"stride", Shape{1, 2, 2}}},
       .why = "three axes",
       .dtypes = kWideFloats},
      {.inputs = {normal({1, 2, 3, 2}), normal({2, 2, 3, 2})},
       .attrs = {{"stride", Shape{2, 3}}, {"output_padding", Shape{1, 2}}},
       .why = "strides, and the rest that they left"},
      {.inputs = {normal({1, 2, 4, 4}), normal({2, 2, 3, 3})},
       .attrs = {{"padding", Shape{1, 2, 0, 1}}},
       .why = "padding is cut off, another one on each side"},
      {.inputs = {normal({1, 1, 3, 4}), normal({1, 2, 3, 2})},
       .attrs = {{"dilation", Shape{2, 3}}, {"stride", Shape{2, 1}}},
       .why = "dilated"},
      {.inputs = {normal({2, 4, 3}), normal({4, 3, 3})},
       .attrs = {{"groups", 2}, {"stride", Shape{2}}, {"padding", Shape{1, 1}}, {"output_padding", Shape{1}}},
       .why = "groups"},
      {.inputs = {normal({1, 3, 3, 3}), normal({3, 1, 2, 2})}, .attrs = {{"groups", 3}}, .why = "depthwise"},
      {.inputs = {normal({0, 2, 5}), normal({2, 3, 2})}, .why = "empty batch"},
      {.inputs = {normal({1, 0, 4}), normal({0, 2, 3})}, .why = "no channels to sum: zeros"},
      {.inputs = {integers({2, 4, 3, 3}, -9, 9), integers({4, 2, 3, 3}, -9, 9)},
       .attrs = {{"groups", 2}, {"stride", Shape{2, 2}}, {"padding", Shape{1, 1, 1, 1}}},
       .why = "small integers: exact"},
      {.inputs = {values({1, kNan, 2, kInf}, {1, 1, 4}), values({1, 0}, {1, 1, 2})},
       .attrs = {{"stride", Shape{3}}},
       .why = "a NaN stays where it was put, gaps are zero",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance
