#include <gtest/gtest.h>

#include <cmath>

#include "codegen/builder.h"
#include "codegen/interpret.h"
#include "codegen/numbers.h"
#include "codegen/render.h"
#include "codegen/verify.h"

namespace weft::codegen::codegen_test {
namespace {

/// y[i] = Σ_k x[i * n + k]
LoopKernel row_sum(DType t = DType::f32) {
  LoopBuilder b;
  const uint32_t x = b.read(t), y = b.write(t);
  const Id n = b.argument(), first = b.mul(b.item(), n);
  const Id acc = b.accumulator(b.number(type_of(t), 0));
  const Id k = b.loop(n);
  b.assign(acc, b.add(acc, b.load(x, b.add(first, k))));
  b.end(k);
  b.store(y, b.item(), acc);
  return b.take();
}
Id find(const LoopKernel& k, Op op) {
  for (Id id = 0; id < k.nodes.size(); ++id)
    if (k.nodes[id].op == op) return id;
  return kNone;
}
void expect_bad(const LoopKernel& k, const char* what) {
  const Status s = verify(k);
  EXPECT_FALSE(s.ok()) << "wanted: " << what;
  EXPECT_NE(s.message().find(what), std::string::npos) << "got: " << s.message() << "\nwanted: " << what;
}

TEST(CodegenVerify, AcceptsAWellFormedKernel) {
  EXPECT_TRUE(verify(row_sum()).ok()) << verify(row_sum()).text();
}

TEST(CodegenVerify, RejectsUseBeforeDefinition) {
  LoopKernel k = row_sum();
  k.nodes[find(k, Op::mul)].in[0] = find(k, Op::store);
  expect_bad(k, "not defined before it");
  k = row_sum();
  k.nodes[find(k, Op::mul)].in[1] = kNone;
  expect_bad(k, "operand 1 is missing, wanted 2");
  k = row_sum();
  k.nodes[find(k, Op::store)].in[1] = find(k, Op::assign);
  expect_bad(k, "assign without a value");
  k = row_sum();
  k.nodes[find(k, Op::mul)].in[2] = 0;
  expect_bad(k, "got operand 2, wanted 2");
}

TEST(CodegenVerify, RejectsAnIndexOutsideItsLoop) {
  LoopKernel k = row_sum();
  k.nodes[find(k, Op::store)].in[0] = find(k, Op::loop);
  expect_bad(k, "used outside the loop that defines it");
  k = row_sum();
  k.nodes.erase(k.nodes.begin() + find(k, Op::end));
  expect_bad(k, "the loop is never closed");
  k = row_sum();
  k.nodes[find(k, Op::end)].in[0] = find(k, Op::mul);
  expect_bad(k, "is not the innermost open loop");
}

TEST(CodegenVerify, RejectsWrongTypes) {
  LoopKernel k = row_sum();
  k.buffers[0].dtype = DType::f64;
  expect_bad(k, "load: got f32, wanted f64");
  k = row_sum(DType::boolean);
  expect_bad(k, "no arithmetic on bool");
  k = row_sum();
  k.nodes[find(k, Op::load)].in[0] = find(k, Op::accumulator);
  expect_bad(k, "load: got f32, wanted index");
  LoopBuilder b;
  const uint32_t x = b.read(DType::i32), y = b.write(DType::i32);
  const Id v = b.load(x, b.item());
  b.store(y, b.item(), b.select(v, v, v));
  expect_bad(b.take(), "select: got i32, wanted bool");
  LoopBuilder c;
  const uint32_t p = c.read(DType::i32), q = c.write(DType::i32);
  c.store(q, c.item(), c.unary(Op::exp, c.load(p, c.item())));
  expect_bad(c.take(), "exp: wanted a float, got i32");
}

TEST(CodegenVerify, RejectsWrongPlaces) {
  LoopKernel k = row_sum();
  k.buffers[1].written = false;
  expect_bad(k, "buffer 1 is read only");
  k = row_sum();
  k.nodes[find(k, Op::load)].slot = 2;
  expect_bad(k, "buffer 2 of 2");
  k = row_sum();
  k.scalars = 1;
  expect_bad(k, "reads scalar 1, got 1 scalars");
  k = row_sum();
  k.nodes[find(k, Op::assign)].in[0] = find(k, Op::load);
  expect_bad(k, "is no accumulator");
  k = row_sum();
  k.fragment = true;
  expect_bad(k, "not allowed in a fragment");
  k = row_sum();
  k.nodes.pop_back();
  expect_bad(k, "nothing is stored");
}

TEST(CodegenInterpret, RunsLoops) {
  float x[] = {1, 2, 3, 4, 5, 6}, y[2] = {};
  const HostBuffer buffers[] = {{x, 6}, {y, 2}};
  const int32_t scalars[] = {2, 3};
  ASSERT_TRUE(interpret(row_sum(), buffers, scalars).ok());
  EXPECT_EQ(y[0], 6);
  EXPECT_EQ(y[1], 15);
}

TEST(CodegenInterpret, RefusesAccessOutsideABuffer) {
  float x[5] = {}, y[2] = {};
  const HostBuffer buffers[] = {{x, 5}, {y, 2}};
  const int32_t scalars[] = {2, 3};
  const Status s = interpret(row_sum(), buffers, scalars);
  EXPECT_NE(s.message().find("item 1: %"), std::string::npos) << s.message();
  EXPECT_NE(s.message().find("element 5 of buffer 0, which has 5"), std::string::npos) << s.message();
  EXPECT_FALSE(interpret(row_sum(), buffers, std::span(scalars, 1)).ok());
  EXPECT_FALSE(interpret(row_sum(), std::span(buffers, 1), scalars).ok());
}

TEST(CodegenInterpret, GuardedLoadsTouchNothing) {
  LoopBuilder b;
  const uint32_t x = b.read(DType::i64), y = b.write(DType::i64);
  b.store(y, b.item(), b.load(x, b.index(99), b.compare(Op::less, b.item(), b.index(0))));
  int64_t in = 7, out = 7;
  const HostBuffer buffers[] = {{&in, 1}, {&out, 1}};
  const int32_t scalars[] = {1};
  ASSERT_TRUE(interpret(b.take(), buffers, scalars).ok());
  EXPECT_EQ(out, 0);
}

TEST(CodegenNumbers, HalvesRoundToNearestEven) {
  EXPECT_EQ(to_f16(1.0), 0x3c00);
  EXPECT_EQ(to_f16(65504), 0x7bff);
  EXPECT_EQ(to_f16(65519.99), 0x7bff);
  EXPECT_EQ(to_f16(65520), 0x7c00);
  EXPECT_EQ(to_f16(std::ldexp(1, -24)), 1);
  EXPECT_EQ(to_f16(std::ldexp(1, -25)), 0);
  EXPECT_EQ(to_f16(std::ldexp(3, -25)), 2);
  EXPECT_EQ(to_f16(-0.0), 0x8000);
  EXPECT_EQ(to_bf16(257), 0x4380);
  EXPECT_EQ(to_bf16(259), 0x4382);
  EXPECT_TRUE(std::isnan(from_bf16(to_bf16(NAN))));
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const uint16_t h = static_cast<uint16_t>(bits);
    ASSERT_TRUE(std::isnan(from_f16(h)) || to_f16(from_f16(h)) == h) << bits;
    ASSERT_TRUE(std::isnan(from_bf16(h)) || to_bf16(from_bf16(h)) == h) << bits;
  }
}

TEST(CodegenNumbers, FloatsOfEightBits) {
  EXPECT_EQ(to_e4m3(448), 0x7e);
  EXPECT_EQ(to_e4m3(464), 0x7e);
  EXPECT_EQ(to_e4m3(-464.01), 0xff);
  EXPECT_EQ(to_e4m3(std::ldexp(1, -10)), 0);
  EXPECT_EQ(to_e4m3(std::ldexp(-3, -10)), 0x82);
  EXPECT_EQ(to_e5m2(57344), 0x7b);
  EXPECT_EQ(to_e5m2(61440), 0x7c);
  EXPECT_EQ(to_e5m2(-INFINITY), 0xfc);
  EXPECT_EQ(to_e5m2(std::ldexp(3, -17)), 2);
  for (uint32_t bits = 0; bits < 0x100; ++bits) {
    const uint8_t b = static_cast<uint8_t>(bits);
    ASSERT_TRUE(std::isnan(from_e4m3(b)) || to_e4m3(from_e4m3(b)) == b) << bits;
    ASSERT_TRUE(std::isnan(from_e5m2(b)) || to_e5m2(from_e5m2(b)) == b) << bits;
  }
}

TEST(CodegenNumbers, PhiloxKnownAnswers) {
  EXPECT_EQ(philox(0, 0), (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
}

TEST(CodegenRender, WritesTheWholeText) {
  const Result<std::string> text = render(row_sum(), opencl_c);
  ASSERT_TRUE(text.ok()) << text.status().text();
  EXPECT_EQ(text.value(), R"(#pragma OPENCL FP_CONTRACT OFF
__kernel void weft_loop_0(__global const float* b0, __global float* b1, const long o0, const long o1, )"
                          R"(const int s0, const int s1) {
  if (get_global_id(0) >= (size_t)s0) return;
  b0 += o0;
  b1 += o1;
  const int v0 = (int)s1;
  const int v1 = (int)get_global_id(0);
  const int v2 = v1 * v0;
  const float v3 = as_float(0x0u);
  float v4 = v3;
  for (int v5 = 0; v5 < v0; ++v5) {
    const int v6 = v2 + v5;
    const float v7 = b0[v6];
    const float v8 = v4 + v7;
    v4 = v8;
  }
  b1[v1] = v4;
}
)");
}

// The same kernel behind a prelude that defines OpenCL's names; its items are a loop.
TEST(CodegenRender, WritesCudaToo) {
  const Result<std::string> text = render(row_sum(), cuda_cpp);
  ASSERT_TRUE(text.ok()) << text.status().text();
  EXPECT_TRUE(text.value().ends_with(
      "extern \"C\" __global__ void __launch_bounds__(256) weft_loop_0(const float* __restrict__ b0, "
      R"(float* __restrict__ b1, const long o0, const long o1, const int s0, const int s1) {
  weft_begin();
  b0 += o0;
  b1 += o1;
  for (uint weft_item = blockIdx.x * blockDim.x + threadIdx.x; weft_item < (uint)s0;
       weft_item += gridDim.x * blockDim.x) {
  const int v0 = (int)s1;
  const int v1 = (int)get_global_id(0);
  const int v2 = v1 * v0;
  const float v3 = as_float(0x0u);
  float v4 = v3;
  for (int v5 = 0; v5 < v0; ++v5) {
    const int v6 = v2 + v5;
    const float v7 = b0[v6];
    const float v8 = v4 + v7;
    v4 = v8;
  }
  b1[v1] = v4;
  }
}
)")) << text.value();
}

TEST(CodegenRender, EqualKernelsGiveEqualTextAndDtypesDiffer) {
  EXPECT_EQ(render(row_sum(), opencl_c).value(), render(row_sum(), opencl_c).value());
  EXPECT_NE(render(row_sum(), opencl_c).value(), render(row_sum(DType::i32), opencl_c).value());
  EXPECT_NE(render(row_sum(DType::f64), opencl_c).value().find("cl_khr_fp64"), std::string::npos);
  EXPECT_EQ(render(row_sum(DType::f32), opencl_c).value().find("cl_khr_fp64"), std::string::npos);
}

TEST(CodegenRender, RefusesWhatTheDialectLacks) {
  Dialect poor = opencl_c;
  poor.storage[static_cast<int>(DType::i32)] = nullptr;
  EXPECT_EQ(render(row_sum(DType::i32), poor).status().message(), "opencl_c cannot store i32");
  poor.rules = poor.rules.first(8);
  EXPECT_NE(render(row_sum(), poor).status().message().find("has no spelling of"), std::string::npos);
  EXPECT_EQ(find_dialect("opencl_c"), &opencl_c);
  EXPECT_EQ(find_dialect("klingon"), nullptr);
}

TEST(CodegenRender, AFragmentIsStatements) {
  LoopBuilder b;
  b.result(0, b.add(b.parameter(Type::f32, 0), b.parameter(Type::f32, 1)));
  const LoopKernel k = b.take();
  ASSERT_TRUE(verify(k).ok());
  const std::string text = render(k, opencl_c).value();
  EXPECT_NE(text.find("out0 = v2;"), std::string::npos) << text;
  EXPECT_EQ(text.find("__kernel"), std::string::npos) << text;
  LoopBuilder h;
  h.result(0, h.unary(Op::exp, h.parameter(Type::f16, 0)));
  EXPECT_NE(render(h.take(), opencl_c).status().message().find("calls weft_f16"), std::string::npos);
}

}  // namespace
}  // namespace weft::codegen::codegen_test
