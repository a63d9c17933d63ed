#include "conformance/cases.h"

namespace weft::conformance {

OpCases sgd_step_cases() {
  const auto with = [](double momentum, double decay, int64_t nesterov) -> std::vector<Attr> {
    return {{"momentum", momentum}, {"weight_decay", decay}, {"nesterov", nesterov}};
  };
  return {
      {.inputs = {normal({4, 5}), normal({4, 5}), normal({4, 5}), values({0.125}, {})},
       .why = "plain descent"},
      {.inputs = {normal({4, 5}), normal({4, 5}), normal({4, 5}), values({0.1L}, {})},
       .attrs = with(0.9, 0.01, 0),
       .why = "momentum and decay"},
      {.inputs = {normal({7}), normal({7}), normal({7}), values({0.1L}, {})},
       .attrs = with(0.5, 0.1, 1),
       .why = "Nesterov's"},
      {.inputs = {normal({}), normal({}), normal({}), values({0.1L}, {})},
       .attrs = with(0.9, 0, 0),
       .why = "rank 0"},
      {.inputs = {normal({0, 3}), normal({0, 3}), normal({0, 3}), values({0.1L}, {})}, .why = "empty"},
      {.inputs = {integers({6}, -9, 9), integers({6}, -9, 9), integers({6}, -9, 9), values({2}, {})},
       .attrs = with(3, 2, 1),
       .why = "small integers"},
  };
}

}  // namespace weft::conformance
