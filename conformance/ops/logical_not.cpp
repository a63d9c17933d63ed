#include "conformance/cases.h"

namespace weft::conformance {

OpCases logical_not_cases() {
  const auto truth = [](Dims shape) { return integers(std::move(shape), 0, 1).as(DType::boolean); };
  return {
      {.inputs = {truth({4, 33})}, .why = "plain"},
      {.inputs = {truth({})}, .why = "rank 0"},
      {.inputs = {truth({0})}, .why = "empty"},
  };
}

}  // namespace weft::conformance
