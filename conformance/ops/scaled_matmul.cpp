#include "conformance/cases.h"

namespace weft::conformance {

OpCases scaled_matmul_cases() {
  using enum DType;
  const auto as_dtype = [](DType t) { return Attr{"dtype", std::string(name(t))}; };
  const auto scale = [](Dims shape) { return uniform(std::move(shape), 0.01, 4).as(f32); };
  const auto e4m3 = [](Dims shape) { return normal(std::move(shape)).as(f8e4m3); };
  const auto e5m2 = [](Dims shape) { return normal(std::move(shape)).as(f8e5m2); };
  constexpr const char* kFlat = "8-bit floats have no derivative";
  OpCases cases;
  for (const DType t : {f32, f16, bf16}) {
    const auto add = [&](std::vector<Input> inputs, const char* why) {
      cases.push_back(
          {.inputs = std::move(inputs), .attrs = {as_dtype(t)}, .why = why, .no_gradient = kFlat});
    };
    add({e4m3({5, 7}), e4m3({6, 7}), scale({}), scale({})}, "a scale for each tensor");
    add({e4m3({5, 7}), e4m3({6, 7}), scale({5}), scale({6}), normal({6}).as(t)},
        "a scale for each row, and a bias");
    add({e4m3({2, 3, 16}), e5m2({8, 16}), scale({2, 3}), scale({}), normal({8}).as(t)},
        "three axes; e4m3 by e5m2");
    add({e5m2({33, 48}), e4m3({24, 48}), scale({}), scale({24})}, "e5m2 by e4m3");
    add({e5m2({4, 32}), e5m2({8, 32}), scale({}), scale({})}, "e5m2 by e5m2");
    add({e4m3({7}), e4m3({6, 7}), scale({}), scale({6})}, "a vector");
    add({e4m3({0, 7}), e4m3({6, 7}), scale({0}), scale({})}, "no rows");
    add({e4m3({3, 0}), e4m3({4, 0}), scale({}), scale({}), normal({4}).as(t)}, "nothing comes in: the bias");
    add({e4m3({130, 272}), e4m3({144, 272}), scale({130}), scale({144}), normal({144}).as(t)},
        "more than a tile each way, no multiple of one");
    add({integers({6, 12}, -9, 9).as(f8e4m3), integers({8, 12}, -9, 9).as(f8e4m3), constant({}, 0.5).as(f32),
         constant({}, 2).as(f32)},
        "small integers: exact");
    add({integers({6, 32}, -9, 9).as(f8e4m3), integers({8, 32}, -9, 9).as(f8e4m3), constant({}, 0.5).as(f32),
         constant({}, 2).as(f32)},
        "small integers in rows of 32: exact with 14 bits, too");
    // 14 bits of a sum, as 8-bit tensor cores keep them, would lose the small products in both.
    std::vector<Real> ones(256, 1);
    ones[0] = 448;
    add({values(ones, {1, 256}).as(f8e4m3), values(ones, {1, 256}).as(f8e4m3), constant({}, 0.0625).as(f32),
         constant({}, 1).as(f32)},
        "a large product and 255 small ones");
    std::vector<Real> far(128, 0x1p-4L);
    far[0] = 1024;
    far[1] = -1024;
    add({values(far, {1, 128}).as(f8e5m2), constant({1, 128}, 1).as(f8e4m3), constant({}, 1).as(f32),
         constant({}, 1).as(f32)},
        "large products cancel, and small ones are left");
    add({values({0x1p-9L, 448, 0, 1}, {2, 2}).as(f8e4m3),
         values({0x1p-16L, 57344, -0x1p-16L, 1}, {2, 2}).as(f8e5m2), constant({2}, 0.25).as(f32), scale({2})},
        "the smallest and the largest of each");
    add({values({kNan, 1, 0, 1, 2, 3}, {3, 2}).as(f8e5m2), values({kInf, 1, 2, 1}, {2, 2}).as(f8e5m2),
         scale({3}), scale({2})},
        "infinity times zero is NaN, and stays in its row");
  }
  return cases;
}

}  // namespace weft::conformance
