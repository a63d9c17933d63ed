#include <algorithm>

#include "conformance/cases.h"

namespace weft::conformance {

using enum DType;

static Input scale(Dims shape) { return uniform(std::move(shape), 0.01, 4).as(f32); }

// With a result of `t`.
static Case product(DType t, std::vector<Input> inputs, const char* why) {
  return {.inputs = std::move(inputs),
          .attrs = {{"dtype", std::string(name(t))}},
          .why = why,
          .no_gradient = "8-bit numbers have no derivative"};
}

static void add_floats(OpCases& cases) {
  const auto e4m3 = [](Dims shape) { return normal(std::move(shape)).as(f8e4m3); };
  const auto e5m2 = [](Dims shape) { return normal(std::move(shape)).as(f8e5m2); };
  for (const DType t : {f32, f16, bf16}) {
    const auto add = [&](std::vector<Input> inputs, const char* why) {
      cases.push_back(product(t, std::move(inputs), why));
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
}

// Kernels' sums are exact, so that only a scale and a bias round. -128 is the one whose negative i8 has not.
static void add_integers(OpCases& cases) {
  const auto whole = [](Dims shape) { return integers(std::move(shape), -128, 127).as(i8); };
  const auto same = [](Dims shape, int x) { return constant(std::move(shape), x).as(i8); };
  const auto one = [] { return constant({}, 1).as(f32); };
  for (const DType t : {f32, f16, bf16}) {
    const auto add = [&](std::vector<Input> inputs, const char* why) {
      cases.push_back(product(t, std::move(inputs), why));
    };
    const auto little = [](Dims shape) { return uniform(std::move(shape), 1e-4, 1e-2).as(f32); };
    add({whole({5, 7}), whole({6, 7}), little({}), little({})}, "integers: a scale for each tensor, odd k");
    add({whole({5, 7}), whole({6, 7}), little({5}), little({6}), normal({6}).as(t)},
        "integers: a scale for each row, and a bias");
    add({whole({2, 3, 16}), whole({8, 16}), little({2, 3}), little({}), normal({8}).as(t)},
        "integers: three axes");
    add({whole({7}), whole({6, 7}), little({}), little({6})}, "integers: a vector");
    add({whole({9, 1}), whole({11, 1}), little({9}), little({11})}, "integers: one product each");
    add({whole({0, 7}), whole({6, 7}), little({0}), little({})}, "integers: no rows");
    add({whole({3, 7}), whole({0, 7}), little({}), little({0})}, "integers: no columns");
    add({whole({3, 0}), whole({4, 0}), little({}), little({}), normal({4}).as(t)},
        "integers: nothing comes in: the bias");
    add({whole({1, 259}), whole({70, 259}), little({}), little({70}), normal({70}).as(t)},
        "integers: few rows, and columns beyond a panel");
    add({whole({130, 275}), whole({147, 275}), little({130}), little({147}), normal({147}).as(t)},
        "integers: more than a tile each way, no multiple of one");
    add({same({9, 300}, -128), same({10, 300}, -128), constant({}, 0x1p-10).as(f32), one()},
        "the least times the least");
    add({same({9, 300}, -128), same({10, 300}, 127), constant({}, 0x1p-10).as(f32), one()},
        "the least times the largest");
    add({same({9, 300}, 127), same({10, 300}, 127), constant({}, 0x1p-10).as(f32), one()},
        "the largest times the largest");
  }
  // 1,100 (-128)^2 is beyond 2^24, up to which f32 has every integer.
  std::vector<Real> a(2200, -128), b(2200, -128);
  std::fill(b.begin() + 1100, b.end(), 127);
  a.back() = 1;
  const auto row = [](std::vector<Real> list) { return values(std::move(list), {1, 2200}).as(i8); };
  cases.push_back(product(f32, {row(std::move(a)), row(std::move(b)), one(), one()},
                          "integers: large sums cancel, and 1 by 127 is left beside them"));
}

OpCases scaled_matmul_cases() {
  OpCases cases;
  add_floats(cases);
  add_integers(cases);
  return cases;
}

}  // namespace weft::conformance
