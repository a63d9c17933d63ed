#include "base/element.h"
#include "conformance/cases.h"

namespace weft::conformance {

OpCases full_cases() {
  OpCases cases;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto type = std::string(name(static_cast<DType>(i)));
    for (const double value : {0.1, 3.0, -2.0, 1e39, 300.0})
      if (may_stand_for(static_cast<DType>(i), value))
        cases.push_back({.inputs = {},
                         .attrs = {{"value", value}, {"shape", Shape{2, 3}}, {"dtype", type}},
                         .why = "rounded to the dtype"});
  }
  cases.push_back(
      {.inputs = {}, .attrs = {{"value", 0.5}, {"shape", Shape{3}}, {"times", Shape{7}}}, .why = "times"});
  cases.push_back({.inputs = {}, .attrs = {{"value", 2.5}}, .why = "rank 0"});
  cases.push_back({.inputs = {}, .attrs = {{"value", 1.0}, {"shape", Shape{0, 2}}}, .why = "empty"});
  cases.push_back({.inputs = {}, .attrs = {}, .why = "all defaults"});
  return cases;
}

}  // namespace weft::conformance
