#include "conformance/cases.h"

namespace weft::conformance {

OpCases cast_cases() {
  OpCases cases;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto to = std::string(name(static_cast<DType>(i)));
    cases.push_back({.inputs = {normal({4, 7})},
                     .attrs = {{"dtype", to}},
                     .why = "small numbers",
                     .no_gradient = "steps are lost in rounding: gradients_test checks it by itself"});
    cases.push_back({.inputs = {values({0,
                                        -0.0L,
                                        1,
                                        -1,
                                        0.5L,
                                        -0.5L,
                                        1.5L,
                                        2.5L,
                                        -2.5L,
                                        1e-40L,
                                        5e-324L,
                                        6e-8L,
                                        1e-10L,
                                        -1e-10L,
                                        65504,
                                        65520,
                                        448,
                                        464,
                                        465,
                                        1e38L,
                                        -1e38L,
                                        3.4e38L,
                                        1e300L,
                                        kInf,
                                        -kInf,
                                        kNan,
                                        255,
                                        256,
                                        -129,
                                        2147483647,
                                        2147483648,
                                        -2147483649.0L,
                                        16777217,
                                        9007199254740993,
                                        9223372036854775807,
                                        18446744073709551615ULL,
                                        1.00390625L,
                                        1.01171875L,
                                        1.00048828125L,
                                        1.000000059604644775390625L})},
                     .attrs = {{"dtype", to}},
                     .why = "ties, ends of every range, zeros, NaN",
                     .no_gradient = "infinite"});
  }
  cases.push_back({.inputs = {normal({})},
                   .attrs = {{"dtype", std::string("f32")}},
                   .why = "rank 0",
                   .no_gradient = "as above"});
  cases.push_back({.inputs = {normal({2, 0})},
                   .attrs = {{"dtype", std::string("f16")}},
                   .why = "empty",
                   .no_gradient = "as above"});
  return cases;
}

}  // namespace weft::conformance
