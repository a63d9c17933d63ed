#include <cmath>

#include "ir/op.h"
#include "tests/backend_harness.h"

// Every primitive op, in cases worked out by hand, on each device that runs the shared kernels.
namespace weft::harness::backend_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
using Dims = std::vector<int64_t>;
using enum DType;

/// The same elements, bit for bit; all NaNs are equal.
void expect_same(const Value& got, const Value& wanted, const std::string& where) {
  bool same = got.dtype == wanted.dtype && got.dims == wanted.dims;
  const auto a = got.doubles(), b = wanted.doubles();
  const size_t width = byte_size(got.dtype);
  for (size_t i = 0; same && i < a.size(); ++i)
    same = (std::isnan(a[i]) && std::isnan(b[i])) ||
           std::memcmp(got.bytes.data() + i * width, wanted.bytes.data() + i * width, width) == 0;
  EXPECT_TRUE(same) << where << "\n  got    " << got.text() << "\n  wanted " << wanted.text();
}

/// On all devices, with garbage in the output before.
void expect(const char* op, const std::vector<Value>& inputs, const Attrs& attrs,
            const std::vector<Value>& wanted) {
  std::vector<Value> rubbish;
  for (const Value& v : wanted) rubbish.emplace_back(v.dtype, v.dims);
  for (Device* d : {&reference(), &far(), &plain_template()}) {
    const Result r = d->run(op, inputs, rubbish, attrs);
    ASSERT_EQ(r.code, WEFT_OK) << d->table->name << ": " << r.text;
    for (size_t k = 0; k < wanted.size(); ++k)
      expect_same(r.outputs[k], wanted[k], std::string(d->table->name) + " " + op);
  }
}

Value f(Dims dims, const std::vector<double>& values) { return {f32, std::move(dims), values}; }
Value i(Dims dims, const std::vector<double>& values) { return {i32, std::move(dims), values}; }
Value b(Dims dims, const std::vector<double>& values) { return {boolean, std::move(dims), values}; }

TEST(Primitives, EachHasARecordOnEachDevice) {
  for (Device* d : {&reference(), &far(), &plain_template()})
    for (const auto* primitive : ir::all_ops()) {
      if (!primitive->primitive()) continue;
      const char* op = primitive->name;
      const auto end = d->kernels + d->n_kernels;
      const auto is_op = [&](const weft_kernel* k) { return std::string_view(k->op) == op; };
      const std::string id = std::string(d->table->name) + "." + op + ".shared";
      const auto at = std::find_if(d->kernels, end, [&](auto* k) { return k->id == id; });
      EXPECT_TRUE(std::find_if(d->kernels, end, is_op) != end && at != end) << id;
    }
}

TEST(Primitives, ArithmeticBroadcasts) {
  expect("add", {f({2, 1}, {1, 2}), f({3}, {10, 20, 30})}, {}, {f({2, 3}, {11, 21, 31, 12, 22, 32})});
  expect("sub", {f({2, 1, 2}, {1, 2, 3, 4}), f({1, 3, 1}, {0, 1, 2})}, {},
         {f({2, 3, 2}, {1, 2, 0, 1, -1, 0, 3, 4, 2, 3, 1, 2})});
  expect("mul", {f({}, {3}), f({2}, {2, kInf})}, {}, {f({2}, {6, kInf})});
  expect("div", {f({}, {1}), f({}, {3})}, {}, {f({}, {1.0 / 3})});
  expect("div", {f({3}, {1, 0, -1}), f({}, {0})}, {}, {f({3}, {kInf, kNaN, -kInf})});
  expect("add", {f({0, 3}, {}), f({1, 3}, {1, 2, 3})}, {}, {f({0, 3}, {})});
  expect("add", {f({1, 1, 1, 2, 1, 1, 1, 1}, {1, 2}), f({1, 2, 1, 1, 1, 1, 1, 1}, {0, 5})}, {},
         {f({1, 2, 1, 2, 1, 1, 1, 1}, {1, 2, 6, 7})});
}

TEST(Primitives, IntegersWrapAndDivideTowardZero) {
  expect("add", {i({2}, {2147483647, -2147483648.0}), i({2}, {1, -1})}, {},
         {i({2}, {-2147483648.0, 2147483647})});
  expect("mul", {i({1}, {65536}), i({1}, {65537})}, {}, {i({1}, {65536})});
  expect("div", {i({5}, {7, -7, 7, 5, -2147483648.0}), i({5}, {-2, 2, 2, 0, -1})}, {},
         {i({5}, {-3, -3, 3, 0, -2147483648.0})});
  expect("sub", {Value(u32, {1}, {0}), Value(u32, {1}, {1})}, {}, {Value(u32, {1}, {4294967295.0})});
  const auto least = std::numeric_limits<int64_t>::min();
  expect("div", {Value::of<int64_t>(i64, {2}, {least, 9}), Value::of<int64_t>(i64, {2}, {-1, 0})}, {},
         {Value::of<int64_t>(i64, {2}, {least, 0})});
  expect("div", {Value(u32, {2}, {9, 9}), Value(u32, {2}, {0, 2})}, {}, {Value(u32, {2}, {0, 4})});
  const uint64_t most = ~uint64_t{0};
  expect("mul", {Value::of<uint64_t>(u64, {1}, {most}), Value::of<uint64_t>(u64, {1}, {most})}, {},
         {Value::of<uint64_t>(u64, {1}, {1})});
}

TEST(Primitives, HalvesRoundOnceToNearestEven) {
  expect("add", {Value(f16, {2}, {2048, 2048}), Value(f16, {2}, {1, 3})}, {},
         {Value(f16, {2}, {2048, 2052})});
  expect("add", {Value(bf16, {2}, {256, 256}), Value(bf16, {2}, {1, 3})}, {}, {Value(bf16, {2}, {256, 260})});
  expect("mul", {Value(f16, {1}, {300}), Value(f16, {1}, {300})}, {}, {Value(f16, {1}, {kInf})});
  expect("sum", {Value(f16, {4096}, std::vector<double>(4096, 1))}, {}, {Value(f16, {}, {4096})});
}

TEST(Primitives, Compare) {
  expect("less", {f({4}, {1, 2, kNaN, -0.0}), f({4}, {2, 2, 1, 0})}, {}, {b({4}, {1, 0, 0, 0})});
  expect("equal", {f({4}, {1, 2, kNaN, -0.0}), f({4}, {2, 2, kNaN, 0})}, {}, {b({4}, {0, 1, 0, 1})});
  expect("less", {b({2, 1}, {0, 1}), b({2}, {0, 1})}, {}, {b({2, 2}, {0, 1, 0, 0})});
  const uint64_t big = uint64_t{1} << 63;
  expect("less", {Value::of<uint64_t>(u64, {1}, {1}), Value::of<uint64_t>(u64, {1}, {big})}, {},
         {b({1}, {1})});
  expect("equal", {Value::of<uint64_t>(u64, {1}, {big}), Value::of<uint64_t>(u64, {1}, {big + 1})}, {},
         {b({1}, {0})});
}

TEST(Primitives, Functions) {
  expect("exp", {f({4}, {0, -kInf, 1000, kNaN})}, {}, {f({4}, {1, 0, kInf, kNaN})});
  expect("log", {f({4}, {1, 0, -1, kInf})}, {}, {f({4}, {0, -kInf, kNaN, kInf})});
  expect("sqrt", {f({3}, {4, 2, -1})}, {}, {f({3}, {2, std::sqrt(2.0), kNaN})});
  expect("exp", {Value(f64, {}, {1})}, {}, {Value(f64, {}, {std::exp(1.0)})});
  expect("sqrt", {Value(bf16, {0}, {})}, {}, {Value(bf16, {0}, {})});
}

TEST(Primitives, Sum) {
  const Value x = f({2, 3}, {1, 2, 3, 4, 5, 6});
  expect("sum", {x}, {{"axes", Dims{}}}, {f({}, {21})});
  expect("sum", {x}, {{"axes", Dims{0}}}, {f({3}, {5, 7, 9})});
  expect("sum", {x}, {{"axes", Dims{1}}, {"keep", 1}}, {f({2, 1}, {6, 15})});
  expect("sum", {f({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8})}, {{"axes", Dims{0, 2}}}, {f({2}, {14, 22})});
  expect("sum", {f({2, 1, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8})}, {{"axes", Dims{2}}},
         {f({2, 1, 2}, {4, 6, 12, 14})});
  expect("sum", {f({3}, {1e8, 1, -1e8})}, {}, {f({}, {1})});
  expect("sum", {f({0, 2}, {})}, {{"axes", Dims{0}}}, {f({2}, {0, 0})});
  expect("sum", {f({2, 0}, {})}, {{"axes", Dims{0}}}, {f({0}, {})});
  expect("sum", {f({}, {7})}, {}, {f({}, {7})});
  expect("sum", {i({2}, {2147483647, 1})}, {}, {i({}, {-2147483648.0})});
}

TEST(Primitives, Max) {
  expect("max", {f({2, 3}, {1, kNaN, 3, -4, -5, -6})}, {{"axes", Dims{1}}}, {f({2}, {kNaN, -4})});
  expect("max", {f({2, 3}, {1, kNaN, 3, -4, -5, -6})}, {{"axes", Dims{0}}}, {f({3}, {1, kNaN, 3})});
  expect("max", {f({2, 0}, {})}, {{"axes", Dims{1}}}, {f({2}, {-kInf, -kInf})});
  expect("max", {i({0}, {})}, {}, {i({}, {-2147483648.0})});
  expect("max", {Value(u32, {0}, {})}, {}, {Value(u32, {}, {0})});
  expect("max", {i({2, 2}, {-5, -6, -7, -1})}, {{"axes", Dims{0}}, {"keep", 1}}, {i({1, 2}, {-5, -1})});
  expect("max", {b({2}, {0, 1})}, {}, {b({}, {1})});
}

TEST(Primitives, MatMul) {
  const Value a = f({2, 3}, {1, 2, 3, 4, 5, 6}), v = f({3, 2}, {7, 8, 9, 10, 11, 12});
  const Value y = f({2, 2}, {58, 64, 139, 154});
  expect("matmul", {a, v}, {}, {y});
  expect("matmul", {f({3, 2}, {1, 4, 2, 5, 3, 6}), v}, {{"transpose_a", 1}}, {y});
  expect("matmul", {a, f({2, 3}, {7, 9, 11, 8, 10, 12})}, {{"transpose_b", 1}}, {y});
  expect("matmul", {f({2, 1, 1, 2}, {1, 2, 3, 4}), f({3, 2, 1}, {1, 0, 0, 1, 1, 1})}, {},
         {f({2, 3, 1, 1}, {1, 2, 3, 3, 4, 7})});
  expect("matmul", {f({2, 0}, {}), f({0, 2}, {})}, {}, {f({2, 2}, {0, 0, 0, 0})});
  expect("matmul", {f({0, 2}, {}), f({2, 3}, {1, 2, 3, 4, 5, 6})}, {}, {f({0, 3}, {})});
  expect("matmul", {f({1, 3}, {1e8, 1, -1e8}), f({3, 1}, {1, 1, 1})}, {}, {f({1, 1}, {1})});
  expect("matmul", {Value(bf16, {1, 2}, {256, 1}), Value(bf16, {2, 1}, {1, 3})}, {},
         {Value(bf16, {1, 1}, {260})});
  // Five by six by one: beyond one tile in both directions.
  expect("matmul", {f({5, 1}, {1, 2, 3, 4, 5}), f({1, 6}, {1, 10, 100, 1000, 10000, 100000})}, {},
         {f({5, 6}, {1,   10,  100, 1e3, 1e4, 1e5, 2,   20,  200, 2e3, 2e4, 2e5, 3,   30,  300,
                     3e3, 3e4, 3e5, 4,   40,  400, 4e3, 4e4, 4e5, 5,   50,  500, 5e3, 5e4, 5e5})});
}

TEST(Primitives, Movement) {
  expect("broadcast", {f({2, 1}, {1, 2})}, {{"shape", Dims{2, 2, 2}}},
         {f({2, 2, 2}, {1, 1, 2, 2, 1, 1, 2, 2})});
  expect("broadcast", {Value(u8, {}, {9})}, {{"shape", Dims{3}}}, {Value(u8, {3}, {9, 9, 9})});
  expect("reshape", {f({2, 3}, {1, 2, 3, 4, 5, 6})}, {{"shape", Dims{3, 2}}},
         {f({3, 2}, {1, 2, 3, 4, 5, 6})});
  expect("slice", {i({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})},
         {{"axis", 1}, {"start", Dims{1}}, {"stop", Dims{4}}, {"step", 2}}, {i({2, 2}, {2, 4, 6, 8})});
  expect("slice", {i({3, 2}, {1, 2, 3, 4, 5, 6})}, {{"start", Dims{1}}, {"stop", Dims{3}}},
         {i({2, 2}, {3, 4, 5, 6})});
  expect("slice", {i({3}, {1, 2, 3})}, {{"start", Dims{3}}, {"stop", Dims{3}}}, {i({0}, {})});
  expect("pad", {f({2, 1}, {1, 2})}, {{"after", Dims{1}}, {"axis", 1}, {"before", Dims{2}}, {"value", -1.0}},
         {f({2, 4}, {-1, -1, 1, -1, -1, -1, 2, -1})});
  expect("pad", {Value(f8e4m3, {0}, {})}, {{"after", Dims{1}}, {"before", Dims{1}}, {"value", 448.0}},
         {Value(f8e4m3, {2}, {448, 448})});
  expect("full", {}, {{"shape", Dims{2}}, {"times", Dims{3}}, {"value", 1.5}}, {f({2}, {4.5, 4.5})});
  expect("full", {}, {{"dtype", "i64"}, {"value", -3.0}}, {Value(i64, {}, {-3})});
  expect("full", {}, {{"dtype", "bool"}, {"shape", Dims{3}}, {"value", 2.0}}, {b({3}, {1, 1, 1})});
}

TEST(Primitives, Gather) {
  const Value x = f({2, 3}, {1, 2, 3, 4, 5, 6});
  expect("gather", {x, i({3}, {1, 0, 1})}, {}, {f({3, 3}, {4, 5, 6, 1, 2, 3, 4, 5, 6})});
  expect("gather", {x, Value(i64, {2, 1}, {2, 0})}, {{"axis", 1}}, {f({2, 2, 1}, {3, 1, 6, 4})});
  expect("gather", {x, i({}, {1})}, {}, {f({3}, {4, 5, 6})});
  expect("gather", {x, i({2, 2}, {0, 2, 1, 1})}, {{"axis", 1}, {"batch", 1}}, {f({2, 2}, {1, 3, 5, 5})});
  // b = 2, m = 2, axis of 2: y[b, m, i] = x[b, m, index[b, i]].
  expect("gather", {f({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), i({2, 1}, {1, 0})}, {{"axis", 2}, {"batch", 1}},
         {f({2, 2, 1}, {2, 4, 5, 7})});
  expect("gather", {x, i({0}, {})}, {}, {f({0, 3}, {})});
  expect("gather", {Value(f8e5m2, {2}, {1, 2}), i({1}, {1})}, {}, {Value(f8e5m2, {1}, {2})});
}

TEST(Primitives, ScatterAdd) {
  const Value x = f({3, 2}, {1, 1, 1, 1, 1, 1});
  expect("scatter_add", {x, i({3}, {2, 0, 2}), f({3, 2}, {1, 2, 3, 4, 5, 6})}, {},
         {f({3, 2}, {4, 5, 1, 1, 7, 9})});
  expect("scatter_add", {f({2, 2}, {0, 0, 0, 0}), i({2, 2}, {1, 1, 0, 1}), f({2, 2}, {1, 2, 3, 4})},
         {{"axis", 1}, {"batch", 1}}, {f({2, 2}, {0, 3, 3, 4})});
  expect("scatter_add", {Value(u32, {1}, {4294967295.0}), i({1}, {0}), Value(u32, {1}, {2})}, {},
         {Value(u32, {1}, {1})});
  // Summed in double and rounded once: 4096 ones in f16, whose spacing above 2048 is two.
  expect("scatter_add",
         {Value(f16, {1}, {0}), i({4096}, std::vector<double>(4096, 0)),
          Value(f16, {4096}, std::vector<double>(4096, 1))},
         {}, {Value(f16, {1}, {4096})});
}

TEST(Primitives, AnIndexOutsideIsADeviceError) {
  std::vector<double> index{1, 2, 3, 70};
  const Value table(f32, {65, 2}), out(f32, {4, 2});
  for (Device* d : {&reference(), &far(), &plain_template()}) {
    // Who runs it later names the kernel; at once, the host does.
    const auto id = [&](const char* kernel) {
      return d == &far() ? d->table->name + std::string(kernel) : "";
    };
    Result r = d->run("gather", {table, i({4}, index)}, {out});
    EXPECT_EQ(r.code, WEFT_DEVICE);
    EXPECT_EQ(r.text, id(".gather.shared: ") + "index 70 outside [0, 65) at position 3");
    r = d->run("scatter_add", {table, Value(i64, {1}, {-1}), Value(f32, {1, 2})}, {table});
    EXPECT_EQ(r.code, WEFT_DEVICE);
    EXPECT_EQ(r.text, id(".scatter_add.shared: ") + "index -1 outside [0, 65) at position 0");
    EXPECT_EQ(d->synchronize(), WEFT_OK) << "an error is reported once";
  }
}

TEST(Primitives, Where) {
  expect("where", {b({2, 1}, {1, 0}), f({2}, {1, 2}), f({}, {9})}, {}, {f({2, 2}, {1, 2, 9, 9})});
  expect("where", {b({}, {0}), Value(i64, {0}, {}), Value(i64, {1}, {1})}, {}, {Value(i64, {0}, {})});
}

TEST(Primitives, Cast) {
  const Value x = f({6}, {300, -300, kNaN, -1.9, kInf, 0.5});
  expect("cast", {x}, {{"dtype", "i8"}}, {Value(i8, {6}, {127, -128, 0, -1, 127, 0})});
  expect("cast", {x}, {{"dtype", "u8"}}, {Value(u8, {6}, {255, 0, 0, 0, 255, 0})});
  expect("cast", {x}, {{"dtype", "bool"}}, {b({6}, {1, 1, 1, 1, 1, 1})});
  expect("cast", {x}, {{"dtype", "f16"}}, {Value(f16, {6}, {300, -300, kNaN, -1.9, kInf, 0.5})});
  expect("cast", {x}, {{"dtype", "f8e4m3"}}, {Value(f8e4m3, {6}, {288, -288, kNaN, -1.875, kNaN, 0.5})});
  expect("cast", {i({3}, {300, -1, 0})}, {{"dtype", "u8"}}, {Value(u8, {3}, {44, 255, 0})});
  expect("cast", {Value(f64, {2}, {1 + 0x1p-11 + 0x1p-40, 1e300})}, {{"dtype", "f16"}},
         {Value::of<uint16_t>(f16, {2}, {0x3c01, 0x7c00})});
  expect("cast", {Value(f8e5m2, {2}, {1.25, -kInf})}, {{"dtype", "f32"}}, {f({2}, {1.25, -kInf})});
  const auto big = std::numeric_limits<int64_t>::max();
  expect("cast", {Value::of<int64_t>(i64, {1}, {big})}, {{"dtype", "u64"}},
         {Value::of<uint64_t>(u64, {1}, {uint64_t(big)})});
}

TEST(Primitives, RandomBits) {
  // The known answer of counter 0 and key 0; the first word of counter 1 follows.
  const Value state = Value::of<uint64_t>(u64, {2}, {0, 0}), next = Value::of<uint64_t>(u64, {2}, {0, 2});
  for (Device* d : {&reference(), &far()}) {
    const Result r =
        d->run("random_bits", {state}, {Value(u32, {5}), state}, {{"shape", Dims{5}}}, {0, {UINT32_MAX, 0}});
    ASSERT_EQ(r.code, WEFT_OK) << r.text;
    EXPECT_EQ(r.outputs[0].at<uint32_t>(0), 0x6627e8d5u);
    EXPECT_EQ(r.outputs[0].at<uint32_t>(3), 0x9b00dbd8u);
    expect_same(r.outputs[1], next, "next");
    const Result later =
        d->run("random_bits", {Value::of<uint64_t>(u64, {2}, {0, 1})}, {Value(u32, {1}), state});
    EXPECT_EQ(later.outputs[0].at<uint32_t>(0), r.outputs[0].at<uint32_t>(4));
  }
  // A wide key and a counter that wraps around, against words that a few lines of Python gave.
  const std::vector<uint32_t> words{0x765ea312, 0x2f79930e, 0xbe043560, 0xc6a57537, 0x6e31b035,
                                    0x36a95fcb, 0x9d22ca15, 0x16df4072, 0xb850222e};
  expect("random_bits", {Value::of<uint64_t>(u64, {2}, {0x0123456789abcdef, 0xfffffffffffffffe})},
         {{"shape", Dims{3, 3}}},
         {Value::of<uint32_t>(u32, {3, 3}, words), Value::of<uint64_t>(u64, {2}, {0x0123456789abcdef, 1})});
  expect("random_bits", {state}, {{"shape", Dims{0}}}, {Value(u32, {0}, {}), state});
}

TEST(Primitives, AccumulateAndUpdate) {
  for (Device* d : {&reference(), &far(), &plain_template()}) {
    Result r = d->run("add", {f({2}, {1, 2}), f({2}, {10, 20})}, {f({2}, {100, 200})}, {}, {1, {}});
    ASSERT_EQ(r.code, WEFT_OK) << r.text;
    expect_same(r.outputs[0], f({2}, {111, 222}), "add +=");
    r = d->run("matmul", {f({1, 2}, {1, 2}), f({2, 1}, {3, 4})}, {f({1, 1}, {100})}, {}, {1, {}});
    ASSERT_EQ(r.code, WEFT_OK) << r.text;
    expect_same(r.outputs[0], f({1, 1}, {111}), "matmul +=");
    r = d->run("sub", {f({2}, {1, 2}), f({2}, {10, 20})}, {f({2}, {0, 0})}, {}, {0, {1}});
    ASSERT_EQ(r.code, WEFT_OK) << r.text;
    expect_same(r.outputs[0], f({2}, {-9, -18}), "sub over its second input");
    r = d->run("scatter_add", {f({2}, {1, 2}), i({2}, {1, 1}), f({2}, {5, 6})}, {f({2}, {0, 0})}, {},
               {0, {0}});
    ASSERT_EQ(r.code, WEFT_OK) << r.text;
    expect_same(r.outputs[0], f({2}, {1, 13}), "scatter_add over x");
    EXPECT_NE(
        d->run("sum", {f({2}, {1, 2})}, {f({}, {0})}, {}, {1, {}}).text.find("cannot add to its output"),
        std::string::npos);
  }
}

}  // namespace
}  // namespace weft::harness::backend_test
