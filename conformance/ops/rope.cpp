#include "conformance/cases.h"

namespace weft::conformance {

OpCases rope_cases() {
  return {
      {.inputs = {normal({2, 3, 8}), normal({3, 4}), normal({3, 4})}, .why = "halves"},
      {.inputs = {normal({2, 3, 8}), normal({3, 4}), normal({3, 4})},
       .attrs = {{"interleaved", 1}},
       .why = "neighbours"},
      {.inputs = {normal({2, 2, 3, 4}), normal({2, 1, 3, 2}), normal({2, 1, 3, 2})},
       .why = "a table for each sequence"},
      {.inputs = {normal({2}), normal({1}), normal({1})}, .why = "one pair"},
      {.inputs = {normal({2, 0, 4}), normal({0, 2}), normal({0, 2})}, .why = "no positions"},
      {.inputs = {integers({2, 3, 4}, -9, 9), integers({3, 2}, -2, 2), integers({3, 2}, -2, 2)},
       .attrs = {{"interleaved", 1}},
       .why = "small integers: exact"},
  };
}

}  // namespace weft::conformance
