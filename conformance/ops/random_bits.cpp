#include "conformance/cases.h"

namespace weft::conformance {

OpCases random_bits_cases() {
  const auto state = [](Real key, Real counter) { return values({key, counter}).as(DType::u64); };
  return {
      {.inputs = {state(0, 0)}, .attrs = {{"shape", Shape{4}}}, .why = "the published vector of zeros"},
      {.inputs = {state(1234567890123456789ULL, 42)},
       .attrs = {{"shape", Shape{3, 7}}},
       .why = "no multiple of 4"},
      {.inputs = {state(18446744073709551615ULL, 4294967295ULL)},
       .attrs = {{"shape", Shape{2, 5}}},
       .why = "the low word of the counter carries"},
      {.inputs = {state(7, 18446744073709551615ULL)},
       .attrs = {{"shape", Shape{9}}},
       .why = "the counter wraps around"},
      {.inputs = {state(3, 5)}, .attrs = {}, .why = "rank 0 draws one"},
      {.inputs = {state(3, 5)}, .attrs = {{"shape", Shape{0, 4}}}, .why = "nothing drawn, nothing advanced"},
  };
}

}  // namespace weft::conformance
