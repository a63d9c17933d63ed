#include <thread>

#include "codegen/render.h"
#include "loops_device.h"
#include "seam/prepared_kernel.h"

namespace weft::loops_test::loops_provider_test {
namespace {

/// exp(a * b - c), in one text that no other test has made.
CallBox fused(Sizes shape, Sizes c) {
  const auto two = [&](const char* op, Sizes b) {
    CallBox s(op);
    s.in(f32, shape).in(f32, b).out(f32, shape);
    return s;
  };
  CallBox box("mul_sub_exp");
  box.in(f32, shape).in(f32, shape).in(f32, c).out(f32, shape);
  CallBox mul = two("mul", shape), sub = two("sub", c), exp("exp");
  exp.in(f32, shape).out(f32, shape);
  const uint32_t p = box.step(mul, {0, 1}), s = box.step(sub, {p, 2});
  box.results({box.step(exp, {s})});
  return box;
}

TEST_F(Loops, OneTextServesEveryShapeOfARegion) {
  const uint64_t before = loops::distinct_texts(), compiled = loops::compilations().programs;
  const T quarter = filled(f32, {2, 3}, 0.25L);
  const T y =
      run(*std::make_unique<CallBox>(fused({2, 3}, {2, 3})), {quarter, filled(f32, {2, 3}, 2), quarter})[0];
  for (long double v : y.values) EXPECT_NEAR(v, std::exp(0.25), 1e-6);
  CallBox other = fused({4, 5, 7}, {4, 5, 7});
  run(other, {varied(f32, {4, 5, 7}), varied(f32, {4, 5, 7}, 2), varied(f32, {4, 5, 7}, 3)});
  EXPECT_EQ(loops::distinct_texts(), before + 1);
  EXPECT_EQ(loops::compilations().programs, compiled + 1);
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

/// Every number of a text, as it is written.
bool holds(const std::string& text, const std::string& number) {
  for (size_t at = text.find(number); at != text.npos; at = text.find(number, at + 1)) {
    const char before = at ? text[at - 1] : ' ',
               after = at + number.size() < text.size() ? text[at + number.size()] : ' ';
    if (!std::isalnum(static_cast<unsigned char>(before)) && !std::isalnum(static_cast<unsigned char>(after)))
      return true;
  }
  return false;
}

TEST_F(Loops, TextsNeverHoldASize) {
  std::deque<CallBox> calls;
  const auto add = [&](CallBox box) -> CallBox& { return calls.emplace_back(std::move(box)); };
  const Sizes big = {7919, 6101}, row = {6101}, column = {7919, 1};
  for (const char* op : {"add", "sub", "mul", "div"})
    add(binary(op, f32, f32, big, row, big)), add(binary(op, i64, i64, big, big, big));
  for (const char* op : {"less", "equal"}) add(binary(op, f16, boolean, big, column, big));
  for (const char* op : {"exp", "log", "sqrt", "cast", "reshape"}) add(unary(op, bf16, bf16, big, big));
  for (const char* op : {"sum", "max"}) add(unary(op, f32, f32, big, {7919})).attr("axes", Sizes{1});
  add(binary("matmul", f32, f32, big, {6101, 7907}, {7919, 7907}));
  add(unary("broadcast", f32, f32, row, big)).attr("shape", big);
  add(unary("slice", f32, f32, big, {3301, 6101})).attr("axis", 0).attr("start", Sizes{1009}).attr("step", 2);
  add(unary("pad", f32, f32, big, {9001, 6101}))
      .attr("axis", 0)
      .attr("before", Sizes{1009})
      .attr("after", Sizes{73});
  add(binary("gather", f32, f32, big, row, {6101, 6101})).input_type(1).dtype = {kDLInt, 64, 1};
  CallBox& scatter = add(CallBox("scatter_add"));
  scatter.in(f32, big).in(i32, {1009}).in(f32, {1009, 6101}).out(f32, big);
  CallBox& where = add(CallBox("where"));
  where.in(boolean, row).in(f32, big).in(f32, column).out(f32, big);
  CallBox& random = add(CallBox("random_bits"));
  random.in(u64, {2}).out(u32, big).out(u64, {2}).attr("shape", big);
  add(CallBox("full")).out(f32, big).attr("times", big).attr("value", 1009.0);
  for (CallBox& box : calls) {
    const weft_call& call = box.call();
    const loops::Form& form = *find_form(call.op);
    ASSERT_EQ(refusal(box), "") << call.op;
    for (uint32_t k = 0; k < 2; ++k) {
      if (!(form.needed(call) >> k & 1)) continue;
      const Result<std::string> text = codegen::render(form.build(call, k), codegen::opencl_c);
      ASSERT_TRUE(text.ok()) << text.status().text();
      for (const char* number : {"7919", "6101", "7907", "1009", "9001", "73", "3301"})
        EXPECT_FALSE(holds(text.value(), number)) << text.value();
    }
  }
}

TEST_F(Loops, RefusesTypesWithAReason) {
  says(binary("add", f8e4m3, f8e4m3, {2}, {2}, {2}), "add does not compute on f8e4m3, a storage type");
  says(binary("add", boolean, boolean, {2}, {2}, {2}), "add is for numbers only, got bool");
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
}

TEST_F(Loops, RefusesModesWithAReason) {
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
}

TEST_F(Loops, RefusesBodiesWithAReason) {
  CallBox region("softmax");
  region.in(f32, {2, 3}).out(f32, {2, 1});
  CallBox sums = unary("cumsum", f32, f32, {2, 3}, {2, 1});
  region.results({region.step(sums, {0})});
  says(std::move(region), "does not broadcast to [2, 1]");
  CallBox mean("mean");
  mean.in(f32, {3, 1}).out(f32, {3, 1});
  CallBox inner = unary("cumsum", f32, f32, {3, 1}, {3, 1});
  mean.results({mean.step(inner, {0})});
  says(std::move(mean), "step 0 of the body: cumsum is not elementwise");
  CallBox same = unary("region", f32, f32, {3, 1}, {3, 1});
  CallBox own = unary("cumsum", f32, f32, {3, 1}, {3, 1});
  same.results({same.step(own, {0})});
  says(std::move(same), "cumsum can't be followed element by element");
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
  source.text = "__kernel void f(__global float* x, const long o) { x[o] = 42.0f; }";
  // PoCL, whose CPU device is called so, has a cache of its own.
  const size_t kept = std::string_view(capability_.label).starts_with("pthread") ? 0 : 1;
  const size_t before = Host::cache().size();
  for (int again = 0; again < 2; ++again) {
    ASSERT_EQ(backend_->compile(device_, &source, &module, &e), WEFT_OK) << e.text;
    EXPECT_EQ(Host::cache().size(), before + kept);
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
  const uint64_t compiled = loops::compilations().programs;
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
  EXPECT_EQ(loops::compilations().programs, compiled + 1);
}

TEST_F(Loops, TextsOfPlansThatArePreparedTogetherAreOneProgram) {
  const auto before = loops::compilations();
  const std::vector<const char*> ops = {"sin", "cos", "erf"};
  seam::Together together;
  std::vector<std::unique_ptr<CallBox>> boxes;
  for (const char* op : ops) {
    boxes.push_back(std::make_unique<CallBox>(unary(op, f64, f64, {5, 3}, {5, 3})));
    const weft_kernel* k = record(op);
    weft_plan plan{};
    plan.kernel = k, plan.call = &boxes.back()->call();
    weft_error e = no_error();
    ASSERT_EQ(k->prepare(k, device_, plan.call, &plan, &e), WEFT_OK) << e.text;
    k->release(&plan);
  }
  EXPECT_EQ(loops::compilations().texts, before.texts) << "compiled before the end";
  const Status end = together.finish();
  ASSERT_TRUE(end.ok()) << end.text();
  EXPECT_EQ(loops::compilations().texts, before.texts + ops.size());
  EXPECT_EQ(loops::compilations().programs, before.programs + 1);
  for (const auto& box : boxes) run(*box, {varied(f64, {5, 3})});  // each is the function that its text says
  EXPECT_EQ(loops::compilations().programs, before.programs + 1);
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
  EXPECT_STREQ(e.text, "no dialect \"klingon\"; known: opencl_c, cuda_cpp");
  CallBox sum("sum");
  sum.in(f32, {2}).out(f32, {2});
  EXPECT_EQ(loops::render(&sum.call(), "opencl_c", text, sizeof text, &e), 0u);
}

}  // namespace
}  // namespace weft::loops_test::loops_provider_test
