#include "conformance/cases.h"

namespace weft::conformance {

OpCases normal_cases() {
  const auto state = [](Real key, Real counter) { return values({key, counter}).as(DType::u64); };
  const auto with = [](Shape shape, double mean, double deviation, const char* dtype) -> std::vector<Attr> {
    return {
        {"shape", std::move(shape)}, {"mean", mean}, {"deviation", deviation}, {"dtype", std::string(dtype)}};
  };
  return {
      {.inputs = {state(99, 7)}, .attrs = {{"shape", Shape{3, 7}}}, .why = "N(0, 1) in f32 by default"},
      {.inputs = {state(99, 8)}, .attrs = with({30}, -2, 3, "f32"), .why = "another distribution"},
      {.inputs = {state(99, 9)}, .attrs = with({3, 5}, -2, 3, "f64"), .why = "f64, from four words each"},
      {.inputs = {state(99, 10)}, .attrs = with({40}, 0.25, 0.5, "f16"), .why = "f16"},
      {.inputs = {state(99, 11)}, .attrs = with({40}, 0, 1, "bf16"), .why = "bf16"},
      {.inputs = {state(5, 6)}, .attrs = with({4}, 1.5, 0, "f32"), .why = "no deviation: the mean"},
      {.inputs = {state(5, 6)}, .attrs = {}, .why = "rank 0"},
      {.inputs = {state(5, 6)}, .attrs = with({0, 3}, 0, 1, "f32"), .why = "empty"},
  };
}

}  // namespace weft::conformance
