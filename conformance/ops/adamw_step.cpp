#include "conformance/cases.h"

namespace weft::conformance {

OpCases adamw_step_cases() {
  // parameter, gradient, mean, square, rate, weights of both means.
  const auto step = [](Dims shape, double rate, double mean_weight,
                       double square_weight) -> std::vector<Input> {
    return {normal(shape),
            normal(shape),
            normal(shape),
            uniform(shape, 0.1, 2),
            constant({}, rate),
            constant({}, mean_weight),
            constant({}, square_weight)};
  };
  std::vector<Input> first = step({4, 9}, 0.001, 0, 0);
  first[2] = constant({4, 9}, 0), first[3] = constant({4, 9}, 0);
  return {
      {.inputs = step({4, 9}, 0.01, 0.5, 0.25), .why = "in the middle of training"},
      {.inputs = first, .why = "the first step: moments and weights are zero"},
      {.inputs = step({7}, 0.1, 0.5, 0.25),
       .attrs = {{"beta1", 0.5}, {"beta2", 0.75}, {"epsilon", 1e-3}, {"weight_decay", 0.5}},
       .why = "every attribute off its default"},
      {.inputs = step({}, 0.01, 0.5, 0.25), .why = "rank 0"},
      {.inputs = step({0, 2}, 0.01, 0.5, 0.25), .why = "empty"},
      {.inputs = {constant({3}, 1), constant({3}, 0), constant({3}, 0), constant({3}, 0), constant({}, 0.125),
                  constant({}, 0.5), constant({}, 0.5)},
       .why = "no gradient: only the decay moves it"},
      {.inputs = {normal({5}), normal({5}), normal({5}), constant({5}, 1), constant({}, 0.125),
                  constant({}, 1), constant({}, 1)},
       .attrs = {{"beta1", 0.5}, {"beta2", 0.75}, {"epsilon", 1}, {"weight_decay", 0.5}},
       .why = "late in training: the weights are 1"},
  };
}

}  // namespace weft::conformance
