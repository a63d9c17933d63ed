#include "conformance/cases.h"

namespace weft::conformance {

OpCases rope_tables_cases() {
  const auto table = [](Input positions, DType t, const char* why) {
    return Case{.inputs = {std::move(positions)},
                .attrs = {{"dim", 8}, {"base", 100.0}, {"dtype", std::string(name(t))}},
                .why = why};
  };
  return {
      table(values({0, 1, 2, 100}).as(DType::i32), DType::f32, "a sequence"),
      table(values({3, 1, 0, 7, 5, 2}, {2, 3}).as(DType::i64), DType::f64, "positions of several sequences"),
      table(values({0, 5, 9}).as(DType::i32), DType::f16, "f16"),
      table(values({0, 5, 9}).as(DType::i32), DType::bf16, "bf16"),
      {.inputs = {values({4}, {}).as(DType::i32)}, .why = "one position, the usual base"},
      {.inputs = {values({0}).as(DType::i32)},
       .attrs = {{"dim", 2}},
       .why = "one pair: its angle is the position"},
  };
}

}  // namespace weft::conformance
