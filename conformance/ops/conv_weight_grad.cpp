#include "conformance/cases.h"

namespace weft::conformance {

OpCases conv_weight_grad_cases() {
  return {
      {.inputs = {normal({2, 3, 6}), normal({2, 4, 4})}, .attrs = {{"kernel", Shape{3}}}, .why = "one axis"},
      {.inputs = {normal({2, 2, 5, 4}), normal({2, 3, 3, 3})},
       .attrs = {{"kernel", Shape{3, 2}}},
       .why = "two axes"},
      {.inputs = {normal({1, 2, 3, 3, 4}), normal({1, 2, 3, 2, 4})},
       .attrs = {{"kernel", Shape{2, 2, 2}}, {"padding", Shape{0, 1, 0, 0, 1, 0}}},
       .why = "three axes",
       .dtypes = kWideFloats},
      {.inputs = {normal({1, 2, 7, 7}), normal({1, 2, 3, 2})},
       .attrs = {{"kernel", Shape{3, 2}}, {"stride", Shape{2, 3}}},
       .why = "strides that leave a rest"},
      {.inputs = {normal({1, 2, 4, 4}), normal({1, 2, 5, 3})},
       .attrs = {{"kernel", Shape{3, 3}}, {"padding", Shape{1, 2, 0, 1}}},
       .why = "padding, another one on each side"},
      {.inputs = {normal({1, 1, 7, 6}), normal({1, 2, 5, 3})},
       .attrs = {{"kernel", Shape{3, 2}}, {"dilation", Shape{2, 3}}, {"padding", Shape{1, 1, 0, 0}}},
       .why = "dilated"},
      {.inputs = {normal({2, 4, 5}), normal({2, 6, 3})},
       .attrs = {{"kernel", Shape{3}}, {"groups", 2}, {"stride", Shape{2}}, {"padding", Shape{1, 1}}},
       .why = "groups"},
      {.inputs = {normal({0, 2, 5}), normal({0, 3, 4})},
       .attrs = {{"kernel", Shape{2}}},
       .why = "no terms: zeros"},
      {.inputs = {integers({2, 4, 5, 5}, -9, 9), integers({2, 4, 3, 3}, -9, 9)},
       .attrs =
           {{"kernel", Shape{3, 3}}, {"groups", 2}, {"stride", Shape{2, 2}}, {"padding", Shape{1, 1, 1, 1}}},
       .why = "small integers: exact"},
      {.inputs = {values({1, kNan, 2, 3, kInf}, {1, 1, 5}), values({0, 1}, {1, 1, 2})},
       .attrs = {{"kernel", Shape{2}}, {"stride", Shape{3}}},
       .why = "what the stride skips does not matter",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance
