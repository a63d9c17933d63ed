#include "ir/op.h"
#include "loops_device.h"

namespace weft::loops_test::loops_test {
namespace {

TEST_F(Loops, HasARecordForEveryPrimitiveAndTheRegion) {
  size_t n = 0;
  for (const ir::OpDef* op : ir::all_ops()) {
    if (!op->primitive()) continue;
    EXPECT_NE(record(op->name), nullptr) << op->name;
    ++n;
  }
  EXPECT_NE(record("region"), nullptr);
  size_t others = 0;
  for (const weft_kernel* k : records_) others += std::string_view(k->id).ends_with(".fused");
  EXPECT_EQ(others, 6u) << "sum, prod, max, min, matmul and region";
  EXPECT_EQ(records_.size(), n + 1 + others) << "a record for an op that is no primitive";
  EXPECT_STREQ(record("region")->id, "loops.region.elementwise");
  EXPECT_STREQ(record("sum")->id, "loops.sum.fused");
  EXPECT_NE(capability_.label[0], 0);
  EXPECT_NE(capability_.numerics[0], 0);
}

TEST_F(Loops, ArithmeticInEveryDtype) {
  for (DType t : {f32, f64, f16, bf16, i32, i64, u32, u64}) {
    expect(binary("add", t, t, {4}, {4}, {4}), {{t, {4}, {1, 2, 3, 40}}, {t, {4}, {5, 6, 7, 8}}},
           {6, 8, 10, 48});
    expect(binary("sub", t, t, {3}, {3}, {3}), {{t, {3}, {5, 6, 7}}, {t, {3}, {1, 6, 2}}}, {4, 0, 5});
    expect(binary("mul", t, t, {3}, {3}, {3}), {{t, {3}, {5, 6, 7}}, {t, {3}, {1, 6, 2}}}, {5, 36, 14});
    expect(binary("div", t, t, {3}, {3}, {3}), {{t, {3}, {8, 6, 16}}, {t, {3}, {4, 6, 2}}}, {2, 1, 8});
    for (const char* op : {"add", "sub", "mul", "div", "less", "equal"}) {
      CallBox box = binary(op, t, op[0] == 'l' || op[0] == 'e' ? boolean : t, {5, 67}, {5, 67}, {5, 67});
      run(box, {varied(t, {5, 67}, 1), varied(t, {5, 67}, 2)});
    }
  }
}

TEST_F(Loops, IntegersWrapAndDivideTowardZero) {
  const long double low = std::numeric_limits<int32_t>::min(), low64 = std::numeric_limits<int64_t>::min();
  expect(binary("div", i32, i32, {6}, {6}, {6}),
         {{i32, {6}, {7, -7, 7, -7, 5, low}}, {i32, {6}, {2, 2, -2, -2, 0, -1}}}, {3, -3, -3, 3, 0, low});
  expect(binary("div", i64, i64, {6}, {6}, {6}),
         {{i64, {6}, {7, -7, 7, -7, 5, low64}}, {i64, {6}, {2, 2, -2, -2, 0, -1}}}, {3, -3, -3, 3, 0, low64});
  expect(binary("div", u32, u32, {2}, {2}, {2}), {{u32, {2}, {4294967295.0L, 5}}, {u32, {2}, {2, 0}}},
         {2147483647, 0});
  expect(binary("add", i32, i32, {1}, {1}, {1}), {{i32, {1}, {2147483647}}, {i32, {1}, {1}}}, {low});
  expect(binary("mul", i64, i64, {1}, {1}, {1}), {{i64, {1}, {low64}}, {i64, {1}, {-1}}}, {low64});
  expect(binary("sub", u64, u64, {1}, {1}, {1}), {{u64, {1}, {0}}, {u64, {1}, {1}}},
         {18446744073709551615.0L});
}

TEST_F(Loops, RemaindersHaveTheSignOfTheDivisor) {
  const long double low = std::numeric_limits<int32_t>::min();
  for (DType t : {f32, f64, f16, bf16})
    expect(binary("mod", t, t, {6}, {6}, {6}),
           {{t, {6}, {5.5L, -5.5L, 5.5L, -5.5L, -1, 1}}, {t, {6}, {2, 2, -2, -2, kInf, 0}}},
           {1.5L, 0.5L, -0.5L, -1.5L, kInf, kNaN});
  for (DType t : {i32, i64})
    expect(binary("mod", t, t, {7}, {7}, {7}),
           {{t, {7}, {7, -7, 7, -7, 5, low, 6}}, {t, {7}, {3, 3, -3, -3, 0, -1, 3}}},
           {1, 2, -2, -1, 0, 0, 0});
  expect(binary("mod", u64, u64, {3}, {3}, {3}),
         {{u64, {3}, {18446744073709551615.0L, 7, 7}}, {u64, {3}, {10, 18446744073709551615.0L, 0}}},
         {5, 7, 0});
}

TEST_F(Loops, ShiftsMoveEverythingOutBeyondTheWidth) {
  expect(binary("shift_left", i32, i32, {5}, {5}, {5}),
         {{i32, {5}, {5, -5, 1, 7, 7}}, {i32, {5}, {1, 1, 31, 32, -1}}}, {10, -10, -2147483648.0L, 0, 0});
  expect(binary("shift_right", i32, i32, {5}, {5}, {5}),
         {{i32, {5}, {5, -5, -1, 7, -7}}, {i32, {5}, {1, 1, 31, 32, -1}}}, {2, -3, -1, 0, -1});
  expect(binary("shift_right", u32, u32, {3}, {3}, {3}),
         {{u32, {3}, {4294967295.0L, 8, 8}}, {u32, {3}, {31, 32, 3}}}, {1, 0, 1});
  expect(binary("shift_right", i64, i64, {3}, {3}, {3}), {{i64, {3}, {-8, -8, 8}}, {i64, {3}, {2, 64, 64}}},
         {-2, -1, 0});
  expect(binary("shift_left", u64, u64, {2}, {2}, {2}), {{u64, {2}, {3, 3}}, {u64, {2}, {63, 64}}},
         {9223372036854775808.0L, 0});
}

TEST_F(Loops, BitsOfIntegersAndBool) {
  for (DType t : {i32, i64, u32, u64}) {
    const T a{t, {2}, {12, 5}}, b{t, {2}, {10, 3}};
    expect(binary("bit_and", t, t, {2}, {2}, {2}), {a, b}, {8, 1});
    expect(binary("bit_or", t, t, {2}, {2}, {2}), {a, b}, {14, 7});
    expect(binary("bit_xor", t, t, {2}, {2}, {2}), {a, b}, {6, 6});
  }
  const T a{boolean, {4}, {0, 0, 1, 1}}, b{boolean, {4}, {0, 1, 0, 1}};
  expect(binary("bit_and", boolean, boolean, {4}, {4}, {4}), {a, b}, {0, 0, 0, 1});
  expect(binary("bit_or", boolean, boolean, {4}, {4}, {4}), {a, b}, {0, 1, 1, 1});
  expect(binary("bit_xor", boolean, boolean, {4}, {4}, {4}), {a, b}, {0, 1, 1, 0});
}

TEST_F(Loops, FloatsRoundOncePerOperation) {
  // 1 + 2^-11 is half way between two f16: to even. 257 is half way between two bf16.
  expect(binary("add", f16, f16, {2}, {2}, {2}),
         {{f16, {2}, {1, 65504}}, {f16, {2}, {0.00048828125L, 65504}}}, {1, kInf});
  expect(binary("add", bf16, bf16, {2}, {2}, {2}), {{bf16, {2}, {256, 256}}, {bf16, {2}, {1, 3}}},
         {256, 260});
  // a * a - b where b is the rounded a * a: a fused multiply-add would give the rounding error instead of 0.
  for (DType t : {f32, f64}) {
    CallBox box("region");
    box.in(t, {1}).in(t, {1}).out(t, {1});
    CallBox mul = binary("mul", t, t, {1}, {1}, {1}), sub = binary("sub", t, t, {1}, {1}, {1});
    const uint32_t square = box.step(mul, {0, 0});
    box.results({box.step(sub, {square, 1})});
    const long double a = t == f32 ? 1.1f : 1.1;
    const long double b = t == f32 ? static_cast<float>(a * a) : static_cast<double>(a * a);
    EXPECT_EQ(run(box, {{t, {1}, {a}}, {t, {1}, {b}}})[0].values[0], 0) << name(t);
  }
}

TEST_F(Loops, NaNRules) {
  expect(binary("less", f32, boolean, {4}, {4}, {4}),
         {{f32, {4}, {kNaN, 1, 1, -0.0L}}, {f32, {4}, {1, kNaN, 2, 0}}}, {0, 0, 1, 0});
  expect(binary("equal", f32, boolean, {3}, {3}, {3}),
         {{f32, {3}, {kNaN, 1, -0.0L}}, {f32, {3}, {kNaN, 1, 0}}}, {0, 1, 1});
  for (DType t : {f32, f64, f16, bf16}) {
    CallBox box("max");
    box.in(t, {3, 3}).out(t, {3}).attr("axes", Sizes{1});
    expect(std::move(box), {{t, {3, 3}, {1, kNaN, 2, kNaN, 5, 6, -3, -kInf, -2}}}, {kNaN, kNaN, -2});
  }
  for (DType t : {f32, f64, f16, bf16}) {
    const T a{t, {4}, {kNaN, 1, -2, kInf}}, b{t, {4}, {1, kNaN, 3, -kInf}};
    expect(binary("maximum", t, t, {4}, {4}, {4}), {a, b}, {kNaN, kNaN, 3, kInf});
    expect(binary("minimum", t, t, {4}, {4}, {4}), {a, b}, {kNaN, kNaN, -2, -kInf});
  }
  expect(binary("div", f32, f32, {3}, {3}, {3}), {{f32, {3}, {1, 0, -1}}, {f32, {3}, {0, 0, 0}}},
         {kInf, kNaN, -kInf});
}

TEST_F(Loops, UnaryFunctions) {
  for (DType t : {f32, f64, f16, bf16}) {
    const double tolerance = tolerance_of(t);
    expect(unary("exp", t, t, {4}, {4}), {{t, {4}, {0, 1, -kInf, kNaN}}}, {1, std::exp(1.0L), 0, kNaN},
           2 * tolerance);
    expect(unary("log", t, t, {4}, {4}), {{t, {4}, {1, 0, 8, -1}}}, {0, -kInf, std::log(8.0L), kNaN},
           2 * tolerance);
    expect(unary("sqrt", t, t, {3}, {3}), {{t, {3}, {4, 2.25L, -1}}}, {2, 1.5L, kNaN});
    expect(unary("log1p", t, t, {3}, {3}), {{t, {3}, {0, -1, 1}}}, {0, -kInf, std::log(2.0L)}, 2 * tolerance);
    expect(unary("sin", t, t, {3}, {3}), {{t, {3}, {0, 1, kInf}}}, {0, std::sin(1.0L), kNaN}, 2 * tolerance);
    expect(unary("cos", t, t, {3}, {3}), {{t, {3}, {0, 1, kInf}}}, {1, std::cos(1.0L), kNaN}, 2 * tolerance);
    expect(unary("tanh", t, t, {3}, {3}), {{t, {3}, {-kInf, 1, kInf}}}, {-1, std::tanh(1.0L), 1},
           2 * tolerance);
    expect(unary("erf", t, t, {3}, {3}), {{t, {3}, {-kInf, 1, kInf}}}, {-1, std::erf(1.0L), 1},
           8 * tolerance);
    expect(unary("floor", t, t, {5}, {5}), {{t, {5}, {1.5L, -1.5L, 2, -kInf, kNaN}}},
           {1, -2, 2, -kInf, kNaN});
    expect(unary("round", t, t, {5}, {5}), {{t, {5}, {1.5L, 2.5L, -0.5L, -kInf, kNaN}}},
           {2, 2, 0, -kInf, kNaN});
    expect(binary("power", t, t, {5}, {5}, {5}),
           {{t, {5}, {3, 0, -2, -2, 4}}, {t, {5}, {2, 0, 3, 0.5L, -0.5L}}}, {9, 1, -8, kNaN, 0.5L},
           16 * tolerance);
  }
}

TEST_F(Loops, CastsSaturateTruncateAndRound) {
  const std::vector<long double> x = {1.9L, -1.9L, kNaN, kInf, -kInf, 3e9L, -0.0L, 200.5L};
  const auto from = [&](DType t, DType to) { return unary("cast", t, to, {8}, {8}); };
  for (DType t : {f32, f64, bf16, f16}) {
    const T in{t, {8}, x};
    expect(from(t, boolean), {in}, {1, 1, 1, 1, 1, 1, 0, 1});
    CallBox wide = from(t, i64);
    run(wide, {in});
  }
  const T in{f32, {8}, x};
  expect(from(f32, i32), {in}, {1, -1, 0, 2147483647, -2147483648.0L, 2147483647, 0, 200});
  expect(from(f32, u32), {in}, {1, 0, 0, 4294967295.0L, 0, 3e9L, 0, 200});
  expect(from(f32, i64), {in}, {1, -1, 0, 9223372036854775807.0L, -9223372036854775808.0L, 3e9L, 0, 200});
  expect(from(f32, u64), {in}, {1, 0, 0, 18446744073709551615.0L, 0, 3e9L, 0, 200});
  expect(from(f32, i8), {in}, {1, -1, 0, 127, -128, 127, 0, 127});
  expect(from(f32, u8), {in}, {1, 0, 0, 255, 0, 255, 0, 200});
  expect(unary("cast", i64, i32, {2}, {2}), {{i64, {2}, {4294967297.0L, -1}}}, {1, -1});
  expect(unary("cast", boolean, f32, {2}, {2}), {{boolean, {2}, {0, 1}}}, {0, 1});
  // Two roundings would give 2^24 + 2^17: the value lies just above the half way point of two bf16.
  expect(unary("cast", i32, bf16, {2}, {2}), {{i32, {2}, {16842753, -16842753}}}, {16908288, -16908288});
  expect(unary("cast", f64, bf16, {1}, {1}), {{f64, {1}, {1.00390625L + 1e-12L}}}, {1.0078125L});
  expect(unary("cast", f64, f16, {1}, {1}), {{f64, {1}, {1.00048828125L + 1e-12L}}}, {1.0009765625L});
  expect(unary("cast", u64, f64, {1}, {1}), {{u64, {1}, {18446744073709551615.0L}}},
         {18446744073709551616.0L});
  for (DType a : {f32, f64, f16, bf16, i32, i64, u32, u64, boolean, i8, u8})
    for (DType b : {f32, f64, f16, bf16, i32, i64, u32, u64, boolean, i8, u8}) {
      CallBox box = unary("cast", a, b, {70}, {70});
      run(box, {varied(a, {70})});
    }
}

TEST_F(Loops, BroadcastsInEveryPosition) {
  expect(binary("add", f32, f32, {2, 3}, {3}, {2, 3}),
         {{f32, {2, 3}, {1, 2, 3, 4, 5, 6}}, {f32, {3}, {10, 20, 30}}}, {11, 22, 33, 14, 25, 36});
  expect(binary("mul", f32, f32, {2, 1}, {1, 3}, {2, 3}),
         {{f32, {2, 1}, {2, 3}}, {f32, {1, 3}, {1, 10, 100}}}, {2, 20, 200, 3, 30, 300});
  expect(binary("sub", i32, i32, {}, {2}, {2}), {{i32, {}, {5}}, {i32, {2}, {1, 2}}}, {4, 3});
  for (int mask = 0; mask < 16; ++mask) {
    Sizes a = {3, 2, 4, 5};
    for (int d = 0; d < 4; ++d)
      if (mask >> d & 1) a[d] = 1;
    CallBox box = binary("add", f32, f32, a, {2, 4, 5}, {3, 2, 4, 5});
    if (mask & 1) box = binary("add", f32, f32, a, {3, 2, 4, 5}, {3, 2, 4, 5});
    run(box, {varied(f32, a), varied(f32, mask & 1 ? Sizes{3, 2, 4, 5} : Sizes{2, 4, 5}, 2)});
  }
  CallBox wide = unary("broadcast", u8, u8, {2, 1}, {2, 2, 3});
  wide.attr("shape", Sizes{2, 2, 3});
  expect(std::move(wide), {{u8, {2, 1}, {7, 9}}}, {7, 7, 7, 9, 9, 9, 7, 7, 7, 9, 9, 9});
  CallBox where("where");
  where.in(boolean, {2, 1}).in(f16, {3}).in(f16, {}).out(f16, {2, 3});
  expect(std::move(where), {{boolean, {2, 1}, {1, 0}}, {f16, {3}, {1, 2, 3}}, {f16, {}, {9}}},
         {1, 2, 3, 9, 9, 9});
}

TEST_F(Loops, Reductions) {
  const T x{f32, {2, 2, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};
  const auto fold = [](const char* op, DType t, Sizes in, Sizes out, Sizes axes) {
    CallBox box(op);
    box.in(t, in).out(t, out).attr("axes", axes).attr("keep", 0);
    return box;
  };
  expect(fold("sum", f32, {2, 2, 3}, {2, 2}, {2}), {x}, {6, 15, 24, 33});
  expect(fold("sum", f32, {2, 2, 3}, {2, 3}, {1}), {x}, {5, 7, 9, 17, 19, 21});
  expect(fold("sum", f32, {2, 2, 3}, {2}, {0, 2}), {x}, {30, 48});
  expect(fold("sum", f32, {2, 2, 3}, {1, 2, 1}, {2, 0}), {x}, {30, 48});
  expect(fold("sum", f32, {2, 2, 3}, {}, {}), {x}, {78});
  expect(fold("max", f32, {2, 2, 3}, {3}, {0, 1}), {x}, {10, 11, 12});
  for (DType t : {f32, f64, f16, bf16, i32, i64, u32, u64})
    for (const char* op : {"sum", "max"}) {
      CallBox box = fold(op, t, {3, 37, 2, 5}, {37, 5}, {0, 2});
      run(box, {varied(t, {3, 37, 2, 5})});
    }
  // In f16 the sum would stop at 2048; 4098 itself lies half way and goes to the even 4096.
  expect(fold("sum", f16, {4098}, {}, {0}), {filled(f16, {4098}, 1)}, {4096});
  expect(fold("max", i32, {2}, {}, {0}), {{i32, {2}, {-5, -9}}}, {-5});
}

TEST_F(Loops, EmptyAndRankZero) {
  const auto fold = [](const char* op, DType t) {
    CallBox box(op);
    box.in(t, {3, 0}).out(t, {3}).attr("axes", Sizes{1});
    return box;
  };
  expect(fold("sum", f32), {filled(f32, {3, 0})}, {0, 0, 0});
  expect(fold("max", f32), {filled(f32, {3, 0})}, {-kInf, -kInf, -kInf});
  expect(fold("max", i32), {filled(i32, {3, 0})}, {-2147483648.0L, -2147483648.0L, -2147483648.0L});
  expect(fold("max", i64), {filled(i64, {3, 0})},
         std::vector<long double>(3, std::numeric_limits<int64_t>::min()));
  expect(fold("max", u64), {filled(u64, {3, 0})}, {0, 0, 0});
  expect(binary("add", f32, f32, {0, 3}, {3}, {0, 3}), {filled(f32, {0, 3}), filled(f32, {3})}, {});
  expect(binary("add", f32, f32, {}, {}, {}), {{f32, {}, {2}}, {f32, {}, {3}}}, {5});
  expect(unary("exp", f32, f32, {0}, {0}), {filled(f32, {0})}, {});
  CallBox sum("sum");
  sum.in(f32, {}).out(f32, {});
  expect(std::move(sum), {{f32, {}, {7}}}, {7});
  CallBox mm = binary("matmul", f32, f32, {2, 0}, {0, 2}, {2, 2});
  expect(std::move(mm), {filled(f32, {2, 0}), filled(f32, {0, 2})}, {0, 0, 0, 0});
  CallBox pad = unary("pad", f32, f32, {0}, {2});
  pad.attr("axis", 0).attr("before", Sizes{1}).attr("after", Sizes{1}).attr("value", 4.0);
  expect(std::move(pad), {filled(f32, {0})}, {4, 4});
}

TEST_F(Loops, Matmul) {
  expect(binary("matmul", f32, f32, {2, 3}, {3, 2}, {2, 2}),
         {{f32, {2, 3}, {1, 2, 3, 4, 5, 6}}, {f32, {3, 2}, {7, 8, 9, 10, 11, 12}}}, {58, 64, 139, 154});
  for (DType t : {f32, f64, f16, bf16})
    for (int ta : {0, 1})
      for (int tb : {0, 1}) {
        const Sizes a = ta ? Sizes{2, 1, 7, 5} : Sizes{2, 1, 5, 7}, b = tb ? Sizes{3, 4, 7} : Sizes{3, 7, 4};
        CallBox box = binary("matmul", t, t, a, b, {2, 3, 5, 4});
        box.attr("transpose_a", ta).attr("transpose_b", tb);
        const T x = varied(t, a), w = varied(t, b, 2), y = run(box, {x, w})[0];
        for (int64_t i = 0; i < 2 * 3 * 5 * 4; ++i) {
          const int64_t n = i % 4, m = i / 4 % 5, p = i / 20 % 3, q = i / 60;
          long double sum = 0;
          for (int64_t k = 0; k < 7; ++k)
            sum += x.values[q * 35 + (ta ? k * 5 + m : m * 7 + k)] *
                   w.values[p * 28 + (tb ? n * 7 + k : k * 4 + n)];
          ASSERT_NEAR(y.values[i], sum, tolerance_of(t) * 20);
        }
      }
}

TEST_F(Loops, Movement) {
  CallBox reshape = unary("reshape", i64, i64, {2, 3}, {3, 2});
  expect(std::move(reshape), {{i64, {2, 3}, {1, 2, 3, 4, 5, 6}}}, {1, 2, 3, 4, 5, 6});
  CallBox slice = unary("slice", f32, f32, {2, 5, 2}, {2, 2, 2});
  slice.attr("axis", 1).attr("start", Sizes{1}).attr("step", 2).attr("stop", Sizes{5});
  const T x{f32, {2, 5, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}};
  expect(std::move(slice), {x}, {2, 3, 6, 7, 12, 13, 16, 17});
  for (DType t : {f32, f64, f16, bf16, i32, i64, u32, u64, i8, u8}) {
    CallBox pad = unary("pad", t, t, {2, 2}, {2, 5});
    pad.attr("after", Sizes{2}).attr("axis", 1).attr("before", Sizes{1}).attr("value", 3.0);
    expect(std::move(pad), {{t, {2, 2}, {1, 2, 4, 5}}}, {3, 1, 2, 3, 3, 3, 4, 5, 3, 3});
  }
  CallBox flags = unary("pad", boolean, boolean, {1}, {2});
  flags.attr("before", Sizes{0}).attr("after", Sizes{1}).attr("value", 1.0);
  expect(std::move(flags), {{boolean, {1}, {0}}}, {0, 1});
}

TEST_F(Loops, GatherAndScatterWithBatch) {
  for (DType it : {i32, i64}) {
    CallBox gather("gather");
    gather.in(f32, {2, 2, 3, 2}).in(it, {2, 2}).out(f32, {2, 2, 2, 2}).attr("axis", 2).attr("batch", 1);
    T x = filled(f32, {2, 2, 3, 2});
    for (size_t i = 0; i < x.values.size(); ++i) x.values[i] = static_cast<int>(i);
    const T index{it, {2, 2}, {2, 0, 1, 1}};
    expect(std::move(gather), {x, index}, {4, 5, 0, 1, 10, 11, 6, 7, 14, 15, 14, 15, 20, 21, 20, 21});
    CallBox scatter("scatter_add");
    scatter.in(f32, {2, 3}).in(it, {2, 3}).in(f32, {2, 3}).out(f32, {2, 3}).attr("axis", 1).attr("batch", 1);
    scatter.update(0, 0);
    expect(std::move(scatter),
           {{f32, {2, 3}, {1, 2, 3, 4, 5, 6}},
            {it, {2, 3}, {0, 0, 2, 1, 7, -1}},
            {f32, {2, 3}, {10, 20, 30, 40, 50, 60}}},
           {31, 2, 33, 4, 45, 6});
  }
  for (DType t : {f64, f16, bf16, i32, i64, u32, u64}) {
    CallBox gather("gather");
    gather.in(t, {5, 3}).in(i64, {2, 4}).out(t, {2, 4, 3}).attr("axis", 0);
    run(gather, {varied(t, {5, 3}), {i64, {2, 4}, {0, 4, 3, 1, 2, 2, 0, 4}}});
    CallBox scatter("scatter_add");
    scatter.in(t, {5, 3}).in(i64, {4}).in(t, {4, 3}).out(t, {5, 3}).attr("axis", 0);
    run(scatter, {varied(t, {5, 3}), {i64, {4}, {0, 4, 4, 1}}, varied(t, {4, 3}, 2)});
  }
}

TEST_F(Loops, GatherOutsideTheAxisIsMarkedNotRead) {
  const T far{i64, {3}, {-1, 3, 4294967296.0L}};
  const auto gather = [](DType t) {
    CallBox box("gather");
    box.in(t, {3}).in(i64, {3}).out(t, {3}).attr("axis", 0);
    return box;
  };
  expect(gather(f32), {filled(f32, {3}, 1), far}, {kNaN, kNaN, kNaN});
  expect(gather(i32), {filled(i32, {3}, 1), far}, std::vector<long double>(3, -2147483648.0L));
  expect(gather(u8), {filled(u8, {3}, 1), far}, {0, 0, 0});
}

TEST_F(Loops, RandomBitsArePhilox) {
  CallBox box("random_bits");
  box.in(u64, {2}).out(u32, {6}).out(u64, {2}).attr("shape", Sizes{6}).update(1, 0);
  const std::vector<T> zero = run(box, {{u64, {2}, {0, 0}}});
  const std::vector<long double> known = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(zero[0].values[i], known[i]);
  EXPECT_EQ(zero[1].values, (std::vector<long double>{0, 2}));
  // The counter carries into its high word, and the key's high word counts.
  const std::vector<T> next = run(box, {{u64, {2}, {0x123456789abcdefL, 0xffffffffL}}});
  EXPECT_EQ(next[1].values, (std::vector<long double>{0x123456789abcdefL, 0x100000001L}));
  for (size_t i = 0; i < 6; ++i)
    EXPECT_EQ(next[0].values[i], codegen::philox(0x123456789abcdefL, 0xffffffffL + i / 4)[i % 4]);
}

TEST_F(Loops, FullIsARunTimeValue) {
  const uint64_t before = loops::distinct_texts();
  for (double value : {2.0, -3.0}) {
    CallBox box("full");
    box.out(f32, {3})
        .attr("dtype", "f32")
        .attr("shape", Sizes{3})
        .attr("times", Sizes{4, 5})
        .attr("value", value);
    expect(std::move(box), {}, std::vector<long double>(3, value * 20));
  }
  EXPECT_LE(loops::distinct_texts(), before + 1);
  for (DType t : {f64, f16, bf16, i32, i64, u32, u64, u8, i8}) {
    CallBox box("full");
    box.out(t, {2}).attr("value", 5.0);
    expect(std::move(box), {}, {5, 5});
  }
  CallBox large("full");
  large.out(i64, {1}).attr("value", -1099511627776.0);
  expect(std::move(large), {}, {-1099511627776.0L});
}

}  // namespace
}  // namespace weft::loops_test::loops_test
