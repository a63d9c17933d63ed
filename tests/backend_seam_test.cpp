#include <csignal>
#include <random>

#include "tests/backend_harness.h"
#include "weft/shared/walk.hpp"

// The contract itself: refusals with reasons, handles, deferred errors, and equal bits on one thread and on
// several.
namespace weft::harness::backend_seam_test {
namespace {

using Dims = std::vector<int64_t>;
using enum DType;

TEST(Seam, HeaderIsC11) {
  if (std::system("command -v cc > /dev/null") != 0) GTEST_SKIP() << "no C compiler";
  EXPECT_EQ(
      std::system("cc -std=c11 -pedantic-errors -Wall -Wextra -Werror -fsyntax-only -x c " WEFT_SOURCE_DIR
                  "/include/weft/backend.h"),
      0);
}

TEST(Seam, AnOldOrNewHostIsRefusedWithText) {
  weft_host other = *host<1>();
  other.abi_min = other.abi_max = WEFT_ABI + 1;
  for (weft_negotiate_fn negotiate :
       {&weft_negotiate_reference, &weft_negotiate_null, Device::plugin("far")}) {
    const weft_backend* table = nullptr;
    weft_error error{.size = sizeof error, .text = {}};
    EXPECT_EQ(negotiate(&other, &table, &error), WEFT_VERSION);
    EXPECT_STREQ(error.text, "built for ABI 2, the host speaks 3 to 3");
    EXPECT_EQ(table, nullptr);
  }
}

TEST(Seam, ShortStructsAreNeverOverrun) {
  weft_error error{.size = 4 + 8, .text = {}};
  std::memset(error.text, 'x', sizeof error.text);
  EXPECT_EQ(backend::fill(&error, WEFT_INTERNAL, "twelve bytes"), WEFT_INTERNAL);
  EXPECT_EQ(std::string_view(error.text), "twelve ");
  EXPECT_EQ(error.text[8], 'x');
  weft_capability c{};
  c.size = offsetof(weft_capability, numerics);
  backend::write_text(&c, &weft_capability::numerics, "beyond");
  backend::write(&c, &weft_capability::units, 7);
  EXPECT_EQ(c.units, 7u);
  EXPECT_EQ(c.numerics[0], 0);
  EXPECT_EQ(backend::format("{} of {}, {}", Dims{1, 2}, 0.5, "x"), "[1, 2] of 0.5, x");
}

/// What `op` on these inputs is refused with, after `change`.
std::string refusal(
    const char* op, const std::vector<Value>& in, const std::vector<Value>& out, const Attrs& attrs,
    const std::function<void(Call&)>& change = [](Call&) {}) {
  Call call(op, in, out, attrs);
  change(call);
  std::string why;
  return reference().find(call.call, &why) == nullptr ? why : "accepted";
}

TEST(Seam, RefusalsSayWhy) {
  const Value x(f32, {2, 3}), m(f32, {3, 2}), y(f32, {2, 2}), n(i32, {2, 3});
  const int64_t strides[] = {1, 2};
  EXPECT_EQ(refusal("matmul", {x, m}, {y}, {}), "accepted");
  EXPECT_EQ(refusal("matmul", {x, m}, {y}, {}, [&](Call& c) { c.input(0).strides = strides; }),
            "reference.matmul.shared input 0 must be contiguous, got strided [2, 3]\n");
  EXPECT_EQ(refusal("matmul", {x, m}, {y}, {}, [](Call& c) { c.input(1).alignment = 2; }),
            "reference.matmul.shared input 1 must be aligned to 4, got 2\n");
  EXPECT_EQ(refusal("matmul", {x, m}, {y}, {}, [](Call& c) { c.input(1).layout = 7; }),
            "reference.matmul.shared input 1 must be row-major, got layout 7\n");
  EXPECT_EQ(
      refusal("matmul", {x, m}, {y}, {}, [](Call& c) { c.call.determinism = WEFT_DETERMINISM_DEVICES; }),
      "reference.matmul.shared determinism level 4 is wanted, this kernel gives 3\n");
  EXPECT_EQ(refusal("matmul", {x, x}, {y}, {}), "reference.matmul.shared inner sizes differ: 3 and 2\n");
  EXPECT_EQ(refusal("matmul", {Value(f32, {4, 2, 3}), m}, {Value(f32, {5, 2, 2})}, {}),
            "reference.matmul.shared leading axes of [4, 2, 3] do not broadcast to [5, 2, 2]\n");
  EXPECT_EQ(refusal("exp", {n}, {n}, {}),
            "reference.exp.shared dtype must be f64, f32, f16 or bf16, got i32\n");
  EXPECT_EQ(refusal("add", {x, n}, {x}, {}),
            "reference.add.shared dtypes must be the same, got f32 and i32\n");
  EXPECT_EQ(refusal("sum", {x}, {y}, {{"axes", Dims{2}}}), "reference.sum.shared axis 2 outside [0, 2)\n");
  EXPECT_EQ(refusal("add", {m, x}, {x}, {}), "reference.add.shared [3, 2] does not broadcast to [2, 3]\n");
}

TEST(Seam, NullTakesAnyCall) {
  Device null(weft_negotiate_null, host<1>());
  ASSERT_EQ(null.n_kernels, 1u);
  const weft_kernel* k = null.kernels[0];
  EXPECT_STREQ(k->op, "*");
  EXPECT_STREQ(k->id, "null.*.nothing");
  EXPECT_EQ(k->flags, uint32_t{WEFT_KERNEL_READS_ALL});
  Call call("no_such_op", {Value(f32, {2})}, {Value(f32, {2})}, {{"colour", "green"}});
  call.call.accumulate = 1;
  EXPECT_EQ(k->accepts(k, null.device, &call.call, &null.error), WEFT_OK);
  EXPECT_STREQ(null.capability.kind, "null");
}

TEST(Seam, TemplateAsksItsOwnKernelsFirst) {
  const Value x(f32, {4}), h(f16, {4});
  Call own("add", {x, x}, {x}, {}), wide("add", {x, Value(f32, {})}, {x}, {}), half("exp", {h}, {h}, {});
  EXPECT_STREQ(plain_template().find(own.call)->id, "template.add.flat");
  EXPECT_STREQ(plain_template().find(wide.call)->id, "template.add.shared");
  EXPECT_STREQ(plain_template().find(half.call)->id, "template.exp.shared");
}

// ---- far
// --------------------------------------------------------------------------------------------------------

TEST(FarDeathTest, ReadingAHandleOnTheHostFaults) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  void* handle = far().upload(Value(f32, {4}));
  EXPECT_DEATH(std::printf("%d", *static_cast<volatile char*>(handle)), "");
  EXPECT_DEATH(*static_cast<volatile char*>(handle) = 1, "");
  far().table->free(far().device, handle);
}

TEST(Far, StatesItsLimitsAndKeepsThem) {
  const weft_capability& c = far().capability;
  EXPECT_EQ(c.host_memory, 0u);
  EXPECT_EQ(c.queue_kind, uint32_t{WEFT_QUEUE_ORDERED});
  EXPECT_EQ(c.max_buffer, uint64_t{64} << 20);
  EXPECT_EQ(c.read_write_buffer, 1u);
  void* handle = nullptr;
  EXPECT_EQ(far().table->allocate(far().device, c.max_buffer + 1, &handle, &far().error), WEFT_UNSUPPORTED);
  for (uint32_t k = 0; k < far().n_kernels; ++k) EXPECT_STRNE(far().kernels[k]->op, "region");
}

/// A queue whose every task comes late, and an addition that waits in it.
class Late : public ::testing::Test {
 protected:
  Late() : delay_(setenv("WEFT_FAR_DELAY_US", "20000", 1)), d_(Device::plugin("far"), host<1>()) {
    unsetenv("WEFT_FAR_DELAY_US");
    x_ = d_.upload(Value(f32, {4}, {1, 2, 3, 4}));
    y_ = d_.upload(Value(f32, {4}));
    plan_.kernel = d_.find(call_.call);
    plan_.call = &call_.call;
  }
  int delay_;
  Device d_;
  Value v_{f32, {4}};
  Call call_{"add", {v_, v_}, {v_}, {}};
  weft_plan plan_{.size = sizeof(weft_plan)};
  void *x_ = nullptr, *y_ = nullptr;
};

TEST_F(Late, AnErrorWaitsForSynchronizeAndLaterWorkStillRuns) {
  Call call("gather", {Value(f32, {4}), Value(i32, {1})}, {Value(f32, {1})}, {});
  const weft_plan plan{.size = sizeof plan, .kernel = d_.find(call.call), .call = &call.call};
  void* index = d_.upload(Value(i32, {1}, {70}));
  EXPECT_EQ(d_.launch(plan, {x_, index}, {y_}), WEFT_OK);
  EXPECT_EQ(d_.launch(plan_, {x_, x_}, {y_}), WEFT_OK);
  Value out(f32, {4});
  d_.download(y_, out);
  EXPECT_EQ(out.doubles(), (std::vector<double>{2, 4, 6, 8}));
  EXPECT_EQ(d_.synchronize(), WEFT_DEVICE);
  EXPECT_STREQ(d_.error.text, "far.gather.shared: index 70 outside [0, 4) at position 0");
  EXPECT_EQ(d_.synchronize(), WEFT_OK);
}

TEST_F(Late, FreeingABufferInUseIsFound) {
  EXPECT_EQ(d_.launch(plan_, {x_, x_}, {y_}), WEFT_OK);
  d_.table->free(d_.device, x_);
  EXPECT_EQ(d_.synchronize(), WEFT_DEVICE);
  EXPECT_STREQ(d_.error.text, "buffer freed while kernel far.add.shared was pending");
  EXPECT_EQ(d_.launch(plan_, {x_, x_}, {y_}), WEFT_INVALID_ARGUMENT);
  EXPECT_STREQ(d_.error.text, "far.add.shared: input 0: no buffer has this handle");
  d_.table->free(d_.device, x_);
  EXPECT_EQ(d_.synchronize(), WEFT_DEVICE);
  d_.table->free(d_.device, y_);
  EXPECT_EQ(d_.synchronize(), WEFT_OK) << "not in use any more: " << d_.error.text;
}

TEST_F(Late, FreedAndFreshMemoryIsNaN) {
  EXPECT_EQ(d_.synchronize(), WEFT_OK);
  d_.table->free(d_.device, x_);
  void* again = nullptr;
  ASSERT_EQ(d_.table->allocate(d_.device, 16, &again, &d_.error), WEFT_OK);
  EXPECT_EQ(again, x_);
  Value out(f32, {4});
  d_.download(again, out);
  for (const double v : out.doubles()) EXPECT_NE(v, v);
}

TEST_F(Late, CopiesGoAllFourWaysInOrder) {
  std::vector<float> from{1, 2, 3, 4}, to(4);
  weft_copy in{.size = sizeof in, .target = x_, .host_source = from.data(), .bytes = 16};
  weft_copy across{.size = sizeof across, .source = x_, .source_offset = 4, .target = y_, .bytes = 12};
  EXPECT_EQ(d_.table->copy(d_.queue, &in, &d_.error), WEFT_OK);
  from.assign(4, -1);  // the host's again when the copy has returned
  EXPECT_EQ(d_.table->copy(d_.queue, &across, &d_.error), WEFT_OK);
  weft_copy out{.size = sizeof out, .source = y_, .host_target = to.data(), .bytes = 12};
  EXPECT_EQ(d_.table->copy(d_.queue, &out, &d_.error), WEFT_OK);
  EXPECT_EQ(to, (std::vector<float>{2, 3, 4, 0}));
  weft_copy host_only{
      .size = sizeof host_only, .host_source = from.data(), .host_target = to.data(), .bytes = 16};
  EXPECT_EQ(d_.table->copy(d_.queue, &host_only, &d_.error), WEFT_OK);
  EXPECT_EQ(to, from);
  across.source_offset = 8;
  EXPECT_EQ(d_.table->copy(d_.queue, &across, &d_.error), WEFT_INVALID_ARGUMENT);
  EXPECT_STREQ(d_.error.text, "bytes 8 to 20 of a buffer of 16");
}

TEST_F(Late, AnOutputThatOverlapsAnInputIsRefused) {
  EXPECT_EQ(d_.launch(plan_, {x_, x_}, {x_}), WEFT_INVALID_ARGUMENT);
  EXPECT_STREQ(d_.error.text, "far.add.shared: output 0 overlaps input 0, and the call does not update it");
}

// ---- the same bits
// ----------------------------------------------------------------------------------------------

Value noise(DType t, Dims dims, double scale = 3, bool index = false) {
  static std::mt19937 random(7);
  Value v(t, std::move(dims));
  std::vector<double> values(v.size());
  for (double& x : values)
    x = index ? double(random() % uint32_t(scale)) : std::normal_distribution<double>(0, scale)(random);
  return Value(t, v.dims, values);
}

/// On one thread here, on three there.
void same_bits(const char* op, const std::vector<Value>& in, const Value& out, const Attrs& attrs = {}) {
  const Result a = reference().run(op, in, {out}, attrs), b = far().run(op, in, {out}, attrs);
  ASSERT_EQ(a.code, WEFT_OK) << op << a.text;
  ASSERT_EQ(b.code, WEFT_OK) << op << b.text;
  EXPECT_EQ(a.outputs[0].bytes, b.outputs[0].bytes) << op << " " << name(out.dtype);
}

TEST(SameBits, OnReferenceAndFarForEveryPrimitive) {
  for (const DType t : {f64, f32, f16, bf16}) {
    const Value wide = noise(t, {70, 1, 300}), tall = noise(t, {5, 1}), y(t, {70, 5, 300});
    for (const char* op : {"add", "sub", "mul", "div"}) same_bits(op, {wide, tall}, y);
    for (const char* op : {"less", "equal"}) same_bits(op, {wide, tall}, Value(boolean, {70, 5, 300}));
    for (const char* op : {"exp", "log", "sqrt"}) same_bits(op, {wide}, Value(t, {70, 1, 300}));
    for (const int64_t axis : {0, 2})
      for (const char* op : {"sum", "max"})
        same_bits(op, {wide}, Value(t, axis == 0 ? Dims{1, 300} : Dims{70, 1}), {{"axes", Dims{axis}}});
    same_bits("matmul", {noise(t, {3, 130, 70}), noise(t, {65, 70})}, Value(t, {3, 130, 65}),
              {{"transpose_b", 1}});
    same_bits("scatter_add", {noise(t, {9, 200}), noise(i32, {400}, 9, true), noise(t, {400, 200})},
              Value(t, {9, 200}));
    same_bits("cast", {noise(t, {40000}, 100)}, Value(i8, {40000}), {{"dtype", "i8"}});
  }
  for (const DType t : {i32, i64, u32, u64})
    for (const char* op : {"add", "sub", "mul", "div"})
      same_bits(op, {noise(t, {200, 200}, 1e6), noise(t, {200}, 1e3)}, Value(t, {200, 200}));
  const Value x = noise(f32, {300, 200});
  same_bits("broadcast", {x}, Value(f32, {2, 300, 200}), {{"shape", Dims{2, 300, 200}}});
  same_bits("reshape", {x}, Value(f32, {200, 300}), {{"shape", Dims{200, 300}}});
  same_bits("slice", {x}, Value(f32, {300, 66}),
            {{"axis", 1}, {"start", Dims{1}}, {"step", 3}, {"stop", Dims{199}}});
  same_bits("pad", {x}, Value(f32, {300, 210}), {{"after", Dims{3}}, {"axis", 1}, {"before", Dims{7}}});
  same_bits("full", {}, Value(f16, {70000}), {{"dtype", "f16"}, {"shape", Dims{70000}}, {"value", 0.1}});
  same_bits("gather", {x, noise(i64, {500}, 300, true)}, Value(f32, {500, 200}));
  same_bits("where", {noise(boolean, {300, 1}, 2, true), x, noise(f32, {200})}, Value(f32, {300, 200}));
  const Value state = Value::of<uint64_t>(u64, {2}, {77, 0xfffffffe}), bits(u32, {10001});
  const Attrs shape = {{"shape", Dims{10001}}};
  const Result a = reference().run("random_bits", {state}, {bits, state}, shape);
  const Result b = far().run("random_bits", {state}, {bits, state}, shape);
  EXPECT_EQ(a.outputs[0].bytes, b.outputs[0].bytes);
  EXPECT_EQ(a.outputs[1].at<uint64_t>(1), 0xfffffffeull + 2501);
}

}  // namespace
}  // namespace weft::harness::backend_seam_test
