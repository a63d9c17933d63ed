#include "conformance/cases.h"

namespace weft::conformance {

OpCases cumsum_cases() {
  const auto with = [](int64_t axis, int64_t exclusive, int64_t reverse) -> std::vector<Attr> {
    return {{"axis", axis}, {"exclusive", exclusive}, {"reverse", reverse}};
  };
  return {
      {.inputs = {normal({5, 3})}, .why = "first axis by default"},
      {.inputs = {normal({2, 5, 3})},
       .attrs = with(-2, 0, 1),
       .why = "from the end, axis counted from the end"},
      {.inputs = {normal({2, 33})}, .attrs = with(1, 1, 0), .why = "without itself"},
      {.inputs = {normal({2, 6})}, .attrs = with(1, 1, 1), .why = "without itself, from the end"},
      {.inputs = {normal({3, 1})}, .attrs = with(1, 1, 0), .why = "an axis of size 1"},
      {.inputs = {normal({3, 0})}, .attrs = with(1, 0, 0), .why = "an empty axis"},
      {.inputs = {normal({0, 3})}, .attrs = with(1, 0, 1), .why = "no rows"},
      {.inputs = {integers({4, 9}, -50, 50)}, .attrs = with(1, 0, 0), .why = "small integers: exact"},
      {.inputs = {constant({300}, 1)}, .why = "more ones than bf16 can count one by one"},
      {.inputs = {values({1, kInf, 2, -kInf, 3, kNan, 4}, {7})},
       .why = "infinities and NaN",
       .no_gradient = "infinite"},
      {.inputs = {values({2147483647, 1, -2147483648.0L, -1, 4294967295, 7})},
       .why = "integers wrap around",
       .dtypes = only({DType::i32, DType::u32, DType::i64, DType::u64})},
  };
}

}  // namespace weft::conformance
