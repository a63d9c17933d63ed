#include "conformance/cases.h"

namespace weft::conformance {

OpCases cache_append_cases() {
  const auto one = [](Real length) { return values({length}, {}).as(DType::i32); };
  return {
      {.inputs = {normal({2, 6, 3}), normal({2, 2, 3}), one(3)}, .why = "in the middle"},
      {.inputs = {normal({1, 5, 4}), normal({1, 1, 4}), one(0)}, .why = "one row, at the front"},
      {.inputs = {normal({3, 2, 7, 2}), normal({3, 2, 3, 2}), values({4, 0, 2}).as(DType::i64)},
       .why = "a length for each sequence"},
      {.inputs = {normal({2, 1, 4, 3}), normal({2, 1, 4, 3}), values({0, 2}).as(DType::i32)},
       .why = "one is filled, the other's last rows lie behind the cache"},
      {.inputs = {normal({2, 1, 4, 2}), normal({2, 1, 2, 2}), values({4, -1}).as(DType::i64)},
       .why = "a full cache stays, and so does what lies before it"},
      {.inputs = {values({kNan, 1, kInf, 2}, {1, 4, 1}), values({-kInf, kNan}, {1, 2, 1}), one(1)},
       .why = "what is written over may be anything, and so may what is written"},
      {.inputs = {normal({0, 2, 4, 2}), normal({0, 2, 1, 2}), one(1)}, .why = "no sequences"},
  };
}

}  // namespace weft::conformance
