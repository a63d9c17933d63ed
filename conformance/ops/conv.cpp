#include "conformance/cases.h"

namespace weft::conformance {

OpCases conv_cases() {
  return {
      {.inputs = {normal({2, 3, 6}), normal({4, 3, 3})}, .why = "one axis"},
      {.inputs = {normal({2, 2, 5, 4}), normal({3, 2, 3, 2})}, .why = "two axes"},
      {.inputs = {normal({1, 2, 3, 3, 4}), normal({2, 2, 2, 2, 2})},
       .attrs = {{"padding", Shape{0, 1, 0, 0, 1, 0}}},
       .why = "three axes",
       .dtypes = kWideFloats},
      {.inputs = {normal({1, 2, 7, 6}), normal({2, 2, 3, 2})},
       .attrs = {{"stride", Shape{2, 3}}},
       .why = "strides that leave a rest"},
      {.inputs = {normal({1, 2, 4, 4}), normal({2, 2, 3, 3})},
       .attrs = {{"padding", Shape{1, 2, 0, 1}}},
       .why = "padding, another one on each side"},
      {.inputs = {normal({1, 1, 7, 6}), normal({2, 1, 3, 2})},
       .attrs = {{"dilation", Shape{2, 3}}, {"padding", Shape{1, 1, 0, 0}}},
       .why = "dilated"},
      {.inputs = {normal({2, 4, 5}), normal({6, 2, 3})},
       .attrs = {{"groups", 2}, {"stride", Shape{2}}, {"padding", Shape{1, 1}}},
       .why = "groups"},
      {.inputs = {normal({1, 3, 4, 4}), normal({3, 1, 2, 2})}, .attrs = {{"groups", 3}}, .why = "depthwise"},
      {.inputs = {normal({2, 5, 3, 3}), normal({4, 5, 1, 1})}, .why = "1 x 1: a matrix product"},
      {.inputs = {normal({1, 2, 3}), normal({2, 2, 2})},
       .attrs = {{"padding", Shape{3, 3}}},
       .why = "windows that see nothing but padding: zeros"},
      {.inputs = {normal({0, 2, 5}), normal({3, 2, 2})}, .why = "empty batch"},
      {.inputs = {normal({1, 0, 4}), normal({2, 0, 3})}, .why = "no channels to sum: zeros"},
      {.inputs = {integers({2, 4, 5, 5}, -9, 9), integers({4, 2, 3, 3}, -9, 9)},
       .attrs = {{"groups", 2}, {"stride", Shape{2, 2}}, {"padding", Shape{1, 1, 1, 1}}},
       .why = "small integers: exact"},
      {.inputs = {values({1, kNan, 2, 3, kInf}, {1, 1, 5}), values({0, 1}, {1, 1, 2})},
       .why = "a NaN stays in its windows",
       .no_gradient = "infinite"},
      {.inputs = {normal({1, 3, 9, 7}), normal({20, 3, 3, 3})},
       .attrs = {{"stride", Shape{2, 1}}, {"padding", Shape{1, 2, 0, 1}}},
       .why = "more filters than a vector holds"},
      {.inputs = {normal({2, 4, 40}), normal({34, 2, 5})},
       .attrs = {{"groups", 2}, {"dilation", Shape{3}}, {"padding", Shape{4, 1}}},
       .why = "as many in each group, dilated"},
      {.inputs = {normal({1, 50, 4, 4}), normal({17, 50, 3, 3})}, .why = "long sums: several blocks"},
      {.inputs = {normal({1, 2, 24, 15}), normal({19, 2, 2, 2})}, .why = "many places: several strips"},
      {.inputs = {normal({1, 3, 33, 17}), normal({18, 3, 1, 1})}, .why = "1 x 1: long rows in place"},
      {.inputs = {values({100, -100, 100, 1}, {1, 4, 1}), values({100, 100, 1, 1}, {1, 4, 1})},
       .why = "cancellation"},
  };
}

}  // namespace weft::conformance
