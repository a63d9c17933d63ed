#include <limits>
#include <thread>

#include "loops_harness.h"

namespace weft::loops_test {
namespace {

using enum DType;
constexpr long double kNaN = std::numeric_limits<long double>::quiet_NaN();
constexpr long double kInf = std::numeric_limits<long double>::infinity();
using Sizes = std::vector<int64_t>;

class Loops : public testing::Test {
 protected:
  void SetUp() override {
    weft_error e = no_error();
    ASSERT_EQ(weft_negotiate_opencl(&Host::table(), &backend_, &e), WEFT_OK) << e.text;
    weft_probe p{};
    p.size = sizeof p;
    ASSERT_EQ(backend_->probe(&p, &e), WEFT_OK) << e.text;
    if (p.n_devices == 0) GTEST_SKIP() << p.reason;
    capability_.size = sizeof capability_;
    ASSERT_EQ(backend_->open_device(0, &device_, &capability_, &e), WEFT_OK) << e.text;
    ASSERT_EQ(backend_->open_queue(device_, &queue_, &e), WEFT_OK) << e.text;
    records_ = loops::provider.kernels(*backend_, device_, capability_, Host::table());
  }
  void TearDown() override {
    if (queue_) backend_->close_queue(queue_);
    if (device_) backend_->close_device(device_);
  }

  const weft_kernel* record(std::string_view op) const {
    for (const weft_kernel* k : records_)
      if (op == k->op) return k;
    return nullptr;
  }
  /// The reason for which the record refuses; empty when it accepts.
  std::string refusal(CallBox& box) {
    const weft_call& call = box.call();
    const weft_kernel* k = record(call.region ? "region" : call.op);
    weft_error e = no_error();
    const weft_code code = k->accepts(k, device_, &call, &e);
    EXPECT_EQ(code == WEFT_OK, e.text[0] == 0) << "a refusal has a reason, and only a refusal";
    return e.text;
  }
  std::vector<T> run(CallBox& box, const std::vector<T>& in) {
    std::vector<Sizes> shapes;
    for (size_t k = 0; k < box.n_outputs(); ++k) shapes.push_back(box.output_shape(k));
    return run(box, in, shapes);
  }
  /// Runs on the device, compares with the interpreter, gives what the device made.
  std::vector<T> run(CallBox& box, const std::vector<T>& in, const std::vector<Sizes>& shapes) {
    EXPECT_EQ(refusal(box), "");
    const weft_call& call = box.call();
    std::deque<Placed> placed;
    std::vector<const weft_tensor*> ins, outs;
    for (const T& t : in) {
      placed.emplace_back(*backend_, device_, queue_, t.dtype, t.shape).write(t);
      ins.push_back(&placed.back().tensor);
    }
    std::vector<Placed*> results;
    for (size_t k = 0; k < shapes.size(); ++k) {
      if (call.updates >> k & 1) {
        results.push_back(&placed[call.update_inputs[k]]);
      } else {
        results.push_back(&placed.emplace_back(*backend_, device_, queue_, box.output_dtype(k), shapes[k]));
      }
      outs.push_back(&results.back()->tensor);
    }
    execute(call, ins, outs);
    std::vector<T> got;
    for (Placed* p : results) got.push_back(p->read());
    const std::vector<T> wanted = interpreted(box, in, shapes);
    for (size_t k = 0; k < got.size(); ++k)
      expect_near(got[k], wanted[k], tolerance_of(got[k].dtype),
                  (std::string(call.op) + " against the interpreter").c_str());
    return got;
  }
  void execute(const weft_call& call, const std::vector<const weft_tensor*>& in,
               const std::vector<const weft_tensor*>& out) {
    const weft_kernel* k = record(call.region ? "region" : call.op);
    weft_plan plan{};
    plan.size = sizeof plan;
    plan.kernel = k;
    plan.call = &call;
    weft_error e = no_error();
    ASSERT_EQ(k->prepare(k, device_, &call, &plan, &e), WEFT_OK) << e.text;
    weft_launch l{sizeof l, 0, &plan, device_, queue_, in.data(), out.data(), nullptr};
    ASSERT_EQ(k->launch(&l, &e), WEFT_OK) << e.text;
    ASSERT_EQ(backend_->synchronize(queue_, &e), WEFT_OK) << e.text;
    k->release(&plan);
  }

  void expect(CallBox&& box, const std::vector<T>& in, const std::vector<long double>& wanted,
              double tolerance = 0) {
    const std::string op = box.call().op;
    const T got = run(box, in)[0];
    expect_near(got, {got.dtype, got.shape, wanted}, tolerance, (op + " by hand").c_str());
  }
  CallBox binary(const char* op, DType t, DType to, Sizes a, Sizes b, Sizes y) {
    CallBox box(op);
    box.in(t, a).in(t, b).out(to, y);
    return box;
  }
  CallBox unary(const char* op, DType t, DType to, Sizes x, Sizes y) {
    CallBox box(op);
    box.in(t, x).out(to, y);
    return box;
  }

  const weft_backend* backend_ = nullptr;
  weft_device device_ = nullptr;
  weft_queue queue_ = nullptr;
  weft_capability capability_{};
  std::vector<const weft_kernel*> records_;
};

TEST_F(Loops, HasARecordForEveryPrimitiveAndTheRegion) {
  for (const char* op : {"add",    "sub",         "mul",   "div",    "less",        "equal",   "exp",   "log",
                         "sqrt",   "sum",         "max",   "matmul", "broadcast",   "reshape", "slice", "pad",
                         "gather", "scatter_add", "where", "cast",   "random_bits", "full",    "region"})
    EXPECT_NE(record(op), nullptr) << op;
  EXPECT_EQ(records_.size(), 23u);
  EXPECT_STREQ(record("region")->id, "loops.region.elementwise");
  EXPECT_STREQ(record("sum")->id, "loops.sum.per_element");
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

TEST_F(Loops, FloatsRoundOncePerOperation) {
  // 1 + 2^-11 is half way between two f16: to even. 257 is half way between two bf16.
  expect(binary("add", f16, f16, {2}, {2}, {2}),
         {{f16, {2}, {1, 65504}}, {f16, {2}, {0.00048828125L, 65504}}}, {1, kInf});
  expect(binary("add", bf16, bf16, {2}, {2}, {2}), {{bf16, {2}, {256, 256}}, {bf16, {2}, {1, 3}}},
         {256, 260});
  // Without contraction, x * x - x * x is 0 even where the product is inexact.
  CallBox box("region");
  box.in(f32, {1}).out(f32, {1});
  CallBox m1 = binary("mul", f32, f32, {1}, {1}, {1}), m2 = binary("mul", f32, f32, {1}, {1}, {1});
  CallBox s = binary("sub", f32, f32, {1}, {1}, {1});
  const uint32_t a = box.step(m1, {0, 0}), b = box.step(m2, {0, 0});
  box.results({box.step(s, {a, b})});
  EXPECT_EQ(run(box, {{f32, {1}, {1.1L}}})[0].values[0], 0);
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
  }
}

TEST_F(Loops, CastsSaturateTruncateAndRound) {
  const std::vector<long double> x = {1.9L, -1.9L, kNaN, kInf, -kInf, 3e9L, -0.0L, 200.5L};
  const auto from = [&](DType t, DType to) { return unary("cast", t, to, {8}, {8}); };
  for (DType t : {f32, f64, bf16, f16}) {
    const T in{t, {8}, x};
    expect(from(t, boolean), {in}, {1, 1, 1, 1, 1, 1, 0, 1});
    run(*std::make_unique<CallBox>(from(t, i64)), {in});
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
  // 2049 ones: f16 alone would stop at 2048.
  expect(fold("sum", f16, {4098}, {}, {0}), {filled(f16, {4098}, 1)}, {4098 - 2}, 1e-2);
  EXPECT_EQ(run(*std::make_unique<CallBox>(fold("sum", f16, {4098}, {}, {0})), {filled(f16, {4098}, 1)})[0]
                .values[0],
            4096);
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

/// exp(a * b + c), in one text.
CallBox fused(Sizes shape, Sizes c) {
  const auto two = [&](const char* op, Sizes b) {
    CallBox s(op);
    s.in(f32, shape).in(f32, b).out(f32, shape);
    return s;
  };
  CallBox box("mul_add_exp");
  box.in(f32, shape).in(f32, shape).in(f32, c).out(f32, shape);
  CallBox mul = two("mul", shape), add = two("add", c), exp("exp");
  exp.in(f32, shape).out(f32, shape);
  const uint32_t p = box.step(mul, {0, 1}), s = box.step(add, {p, 2});
  box.results({box.step(exp, {s})});
  return box;
}

TEST_F(Loops, OneTextServesEveryShapeOfARegion) {
  const uint64_t before = loops::distinct_texts(), compiled = loops::compilations();
  const T quarter = filled(f32, {2, 3}, 0.25L);
  const T y =
      run(*std::make_unique<CallBox>(fused({2, 3}, {2, 3})), {quarter, filled(f32, {2, 3}, 2), quarter})[0];
  for (long double v : y.values) EXPECT_NEAR(v, std::exp(0.75), 1e-6);
  CallBox other = fused({4, 5, 7}, {4, 5, 7});
  run(other, {varied(f32, {4, 5, 7}), varied(f32, {4, 5, 7}, 2), varied(f32, {4, 5, 7}, 3)});
  EXPECT_EQ(loops::distinct_texts(), before + 1);
  EXPECT_EQ(loops::compilations(), compiled + 1);
  // Broadcast along one axis or another: strides are arguments, so both are one more text.
  CallBox rows = fused({4, 5}, {5}), columns = fused({4, 5}, {4, 1});
  run(rows, {varied(f32, {4, 5}), varied(f32, {4, 5}, 2), varied(f32, {5}, 3)});
  run(columns, {varied(f32, {4, 5}), varied(f32, {4, 5}, 2), varied(f32, {4, 1}, 3)});
  EXPECT_EQ(loops::distinct_texts(), before + 2);
}

TEST_F(Loops, ARangeOfSizesIsServedByOnePlan) {
  CallBox box("add");
  box.in(f32, {9, 4}, {1, 4}).in(f32, {9, 4}, {1, 4}).out(f32, {9, 4}, {1, 4});
  for (int64_t n : {1, 3, 9}) run(box, {varied(f32, {n, 4}), varied(f32, {n, 4}, 2)}, {{n, 4}});
  // One side turned out to be 1: the strided kernel of the same plan.
  const T y =
      run(box, {{f32, {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}}, {f32, {1, 4}, {10, 20, 30, 40}}}, {{2, 4}})[0];
  EXPECT_EQ(y.values, (std::vector<long double>{11, 22, 33, 44, 15, 26, 37, 48}));
}

TEST_F(Loops, ARegionMayHaveSeveralOutputsAndOverwriteAnInput) {
  CallBox box("region");
  box.in(f16, {4}).in(f16, {4}).out(f16, {4}).out(boolean, {4}).update(0, 1);
  CallBox full("full"), add = binary("add", f16, f16, {4}, {}, {4}),
                        less = binary("less", f16, boolean, {4}, {4}, {4});
  full.out(f16, {}).attr("value", 0.5);
  const uint32_t half = box.step(full, {}), sum = box.step(add, {0, half}), below = box.step(less, {sum, 1});
  box.results({sum, below});
  const std::vector<T> y = run(box, {{f16, {4}, {1, 2, 3, 4}}, {f16, {4}, {9, 0, 9, 0}}});
  EXPECT_EQ(y[0].values, (std::vector<long double>{1.5L, 2.5L, 3.5L, 4.5L}));
  EXPECT_EQ(y[1].values, (std::vector<long double>{1, 0, 1, 0}));
}

TEST_F(Loops, TextsNeverHoldASize) {
  for (const weft_kernel* k : records_) {
    if (std::string_view(k->op) != "slice") continue;
    CallBox box = unary("slice", f32, f32, {7919, 6101}, {3301, 6101});
    box.attr("axis", 0).attr("start", Sizes{1009}).attr("step", 2);
    const codegen::LoopKernel kernel = find_form("slice")->build(box.call(), 0);
    for (const codegen::Node& n : kernel.nodes) EXPECT_NE(n.op, codegen::Op::constant);
  }
}

TEST_F(Loops, RefusesWithAReason) {
  const auto says = [&](CallBox box, const char* what) {
    const std::string reason = refusal(box);
    EXPECT_NE(reason.find(what), std::string::npos) << "got: " << reason << "\nwanted: " << what;
  };
  says(binary("add", f8e4m3, f8e4m3, {2}, {2}, {2}), "input 0 is f8e4m3, which opencl:0 does not have");
  says(binary("add", boolean, boolean, {2}, {2}, {2}), "add is not for bool");
  says(binary("add", u8, u8, {2}, {2}, {2}), "add does not compute on u8");
  says(unary("exp", i32, i32, {2}, {2}), "exp is for floats only, got i32");
  says(binary("matmul", i32, i32, {2, 2}, {2, 2}, {2, 2}), "matmul is for floats only, got i32");
  says(unary("exp", f32, f32, Sizes(9, 1), Sizes(9, 1)), "input 0 has rank 9, wanted <= 8");
  says(unary("exp", f32, f32, {1 << 16, 1 << 16}, {1 << 16, 1 << 16}), "elements, wanted < 2^31");
  CallBox strided = unary("exp", f32, f32, {2, 2}, {2, 2});
  const int64_t strides[] = {1, 2};
  strided.input_type(0).strides = strides;
  says(std::move(strided), "input 0 is strided");
  CallBox misaligned = unary("exp", f32, f32, {2}, {2});
  misaligned.input_type(0).alignment = 2;
  says(std::move(misaligned), "input 0 is aligned to 2, wanted 4");
  CallBox packed = unary("exp", f32, f32, {2}, {2});
  packed.input_type(0).layout = 3;
  says(std::move(packed), "input 0 has layout 3");
  CallBox accumulate = unary("exp", f32, f32, {2}, {2});
  accumulate.accumulate = 1;
  says(std::move(accumulate), "accumulate");
  CallBox exact = unary("exp", f32, f32, {2}, {2});
  exact.determinism = WEFT_DETERMINISM_DEVICES;
  says(std::move(exact), "determinism level 4");
  CallBox over = binary("add", f32, f32, {3}, {2, 3}, {2, 3});
  over.update(0, 0);
  says(std::move(over), "output 0 [2, 3] is written over input 0 [3], which has another size");
  CallBox mm = binary("matmul", f32, f32, {2, 2}, {2, 2}, {2, 2});
  mm.update(0, 0);
  says(std::move(mm), "which other items still read");
  CallBox region("softmax");
  region.in(f32, {2, 3}).out(f32, {2, 1});
  CallBox sum = unary("sum", f32, f32, {2, 3}, {2, 1});
  region.results({region.step(sum, {0})});
  says(std::move(region), "does not broadcast to [2, 1]");
  CallBox mean("mean");
  mean.in(f32, {3, 1}).out(f32, {3, 1});
  CallBox inner = unary("sum", f32, f32, {3, 1}, {3, 1});
  mean.results({mean.step(inner, {0})});
  says(std::move(mean), "step 0 of the body: sum is not elementwise");
  CallBox two("region");
  two.in(f32, {3}).out(f32, {3}).out(f32, {});
  says(std::move(two), "no body");
  CallBox slice = unary("slice", f32, f32, {4}, {3});
  slice.attr("axis", 0).attr("start", Sizes{2});
  says(std::move(slice), "slice: 3 elements from 2 by 1 of an axis of 4");
}

TEST_F(Loops, ReportsTheBuildLogAndUsesTheDiskCache) {
  weft_error e = no_error();
  weft_source source{sizeof source, 0, "__kernel void f(__global float* x) { x[0] = nonsense; }", "f"};
  weft_module module = nullptr;
  EXPECT_EQ(backend_->compile(device_, &source, &module, &e), WEFT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(e.text).find("nonsense"), std::string::npos) << e.text;
  source.text = "__kernel void f(__global float* x, const int o) { x[o] = 42.0f; }";
  const size_t before = Host::cache().size();
  for (int again = 0; again < 2; ++again) {
    ASSERT_EQ(backend_->compile(device_, &source, &module, &e), WEFT_OK) << e.text;
    EXPECT_EQ(Host::cache().size(), before + 1);
    Placed x(*backend_, device_, queue_, f32, {1});
    const weft_tensor* buffers[] = {&x.tensor};
    weft_dispatch d{};
    d.size = sizeof d;
    d.n_buffers = 1;
    d.module = module;
    d.buffers = buffers;
    d.global[0] = 1;
    d.name = "test.f";
    ASSERT_EQ(backend_->dispatch(queue_, &d, &e), WEFT_OK) << e.text;
    EXPECT_EQ(x.read().values[0], 42);
    backend_->release_module(module);
  }
}

TEST_F(Loops, EqualTextIsCompiledOnceFromManyThreads) {
  const uint64_t compiled = loops::compilations();
  const weft_kernel* k = record("log");
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      CallBox box = unary("log", f64, f64, {i + 2}, {i + 2});
      weft_plan plan{};
      plan.kernel = k;
      plan.call = &box.call();
      weft_error e = no_error();
      EXPECT_EQ(k->prepare(k, device_, plan.call, &plan, &e), WEFT_OK) << e.text;
      k->release(&plan);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(loops::compilations(), compiled + 1);
}

TEST(LoopsRender, GivesStatementsForAHole) {
  CallBox box = fused({2, 3}, {3});
  char text[1024];
  weft_error e = no_error();
  const uint64_t n = loops::render(&box.call(), "opencl_c", text, sizeof text, &e);
  ASSERT_GT(n, 0u) << e.text;
  EXPECT_EQ(n, std::strlen(text));
  EXPECT_NE(std::strstr(text, "in2"), nullptr) << text;
  EXPECT_NE(std::strstr(text, "out0 = "), nullptr) << text;
  EXPECT_EQ(loops::render(&box.call(), "klingon", text, sizeof text, &e), 0u);
  EXPECT_STREQ(e.text, "no dialect \"klingon\"; known: opencl_c");
  CallBox sum("sum");
  sum.in(f32, {2}).out(f32, {2});
  EXPECT_EQ(loops::render(&sum.call(), "opencl_c", text, sizeof text, &e), 0u);
}

}  // namespace
}  // namespace weft::loops_test
