#include "conformance/cases.h"

namespace weft::conformance {

OpCases logical_or_cases() {
  const auto truth = [](Dims shape) { return integers(std::move(shape), 0, 1).as(DType::boolean); };
  return {
      {.inputs = {truth({4, 33}), truth({4, 33})}, .why = "same shapes"},
      {.inputs = {truth({2, 1, 5}), truth({3, 1})}, .why = "both sides broadcast"},
      {.inputs = {truth({}), truth({7})}, .why = "rank 0"},
      {.inputs = {truth({0}), truth({1})}, .why = "empty"},
  };
}

}  // namespace weft::conformance
