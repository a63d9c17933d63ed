#include "conformance/cases.h"

namespace weft::conformance {

OpCases iota_cases() {
  const auto of = [](int64_t n, const char* dtype) -> std::vector<Attr> {
    return {{"size", Shape{n}}, {"dtype", std::string(dtype)}};
  };
  return {
      {.attrs = {{"size", Shape{7}}}, .why = "i32 by default"},
      {.attrs = of(300, "f32"), .why = "f32"},
      {.attrs = of(5, "f64"), .why = "f64"},
      {.attrs = of(2100, "f16"), .why = "beyond 2048 f16 holds even numbers only"},
      {.attrs = of(300, "bf16"), .why = "beyond 256 bf16 holds even numbers only"},
      {.attrs = of(6, "i64"), .why = "i64"},
      {.attrs = of(6, "u32"), .why = "u32"},
      {.attrs = of(6, "u64"), .why = "u64"},
      {.attrs = {}, .why = "nothing by default"},
  };
}

}  // namespace weft::conformance
