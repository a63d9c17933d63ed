#include <gtest/gtest.h>

#include "codegen/builder.h"
#include "codegen/interpret.h"
#include "codegen/render.h"
#include "codegen/verify.h"

// Kernels with groups: errors found by the verifier, and those that only the interpreter can find.
namespace weft::codegen::codegen_groups_test {
namespace {

/// y[group * 4 + local] = x[group * 4 + 3 - local], by way of a shared array.
LoopKernel reversed(bool with_barrier = true) {
  LoopBuilder b;
  b.groups_of(4);
  const uint32_t x = b.read(DType::f32), y = b.write(DType::f32);
  const Id local = b.local(), group = b.group(), four = b.index(4), at = b.nest(group, four, local);
  const Id array = b.shared(Type::f32, 4);
  b.store_shared(array, local, b.load(x, at));
  if (with_barrier) b.barrier();
  const Id three = b.index(3), mirrored = b.binary(Op::sub, three, local);
  b.store(y, at, b.load_shared(array, mirrored));
  return b.take();
}
Status run(const LoopKernel& k, std::vector<float>& y) {
  std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8};
  y.assign(8, 0);
  const HostBuffer buffers[] = {{x.data(), 8}, {y.data(), 8}};
  const int32_t scalars[] = {2};
  return interpret(k, buffers, scalars);
}
void expect_says(const Status& s, const char* what) {
  EXPECT_FALSE(s.ok()) << "wanted: " << what;
  EXPECT_NE(s.message().find(what), std::string::npos) << "got: " << s.message() << "\nwanted: " << what;
}

TEST(CodegenGroups, ItemsMeetAtABarrier) {
  ASSERT_TRUE(verify(reversed()).ok()) << verify(reversed()).text();
  std::vector<float> y;
  const Status ran = run(reversed(), y);
  ASSERT_TRUE(ran.ok()) << ran.text();
  EXPECT_EQ(y, (std::vector<float>{4, 3, 2, 1, 8, 7, 6, 5}));
}

TEST(CodegenGroups, ARaceIsFound) {
  std::vector<float> y;
  expect_says(run(reversed(false), y), "group 0, item 0");
  LoopBuilder b;  // all items write one element
  b.groups_of(2);
  const uint32_t out = b.write(DType::i32);
  const Id array = b.shared(Type::i32, 1), zero = b.index(0);
  b.store_shared(array, zero, b.number(Type::i32, 1));
  b.barrier();
  b.store(out, zero, b.load_shared(array, zero));
  int32_t value = 0;
  const HostBuffer buffers[] = {{&value, 1}};
  const int32_t scalars[] = {1};
  expect_says(interpret(b.take(), buffers, scalars), "which another item uses before the next barrier");
}

TEST(CodegenGroups, WhatNobodyWroteIsNotRead) {
  LoopBuilder b;
  b.groups_of(2);
  const uint32_t out = b.write(DType::i32);
  const Id array = b.shared(Type::i32, 3);
  b.store(out, b.local(), b.load_shared(array, b.index(2)));
  int32_t values[2] = {};
  const HostBuffer buffers[] = {{values, 2}};
  const int32_t scalars[] = {1};
  expect_says(interpret(b.take(), buffers, scalars), "element 2, which nobody has written");
}

TEST(CodegenGroups, BarriersInLoopsMeetInEveryRound) {
  LoopBuilder b;  // the array is turned by one place in each of s1 rounds
  b.groups_of(4);
  const uint32_t y = b.write(DType::i32);
  const Id rounds = b.argument(), local = b.local(), array = b.shared(Type::index, 4);
  b.store_shared(array, local, local);
  b.barrier();
  const Id l = b.loop(rounds);
  const Id next = b.load_shared(array, b.binary(Op::mod, b.add(local, b.index(1)), b.index(4)));
  b.barrier();
  b.store_shared(array, local, next);
  b.barrier();
  b.end(l);
  b.store(y, local, b.cast(b.load_shared(array, local), Type::i32));
  const LoopKernel k = b.take();
  ASSERT_TRUE(verify(k).ok()) << verify(k).text();
  int32_t values[4] = {};
  const HostBuffer buffers[] = {{values, 4}};
  const int32_t scalars[] = {1, 3};
  const Status ran = interpret(k, buffers, scalars);
  ASSERT_TRUE(ran.ok()) << ran.text();
  EXPECT_EQ(std::vector<int32_t>(values, values + 4), (std::vector<int32_t>{3, 0, 1, 2}));
}

TEST(CodegenGroups, TheVerifierRefusesWhatItemsCannotDoTogether) {
  LoopBuilder varied;
  varied.groups_of(4);
  const uint32_t y = varied.write(DType::i32);
  const Id l = varied.loop(varied.local());
  varied.barrier();
  varied.end(l);
  varied.store(y, varied.local(), varied.number(Type::i32, 0));
  expect_says(verify(varied.take()), "which items may run differently often");

  LoopBuilder alone;
  alone.store(alone.write(DType::i32), alone.local(), alone.number(Type::i32, 0));
  expect_says(verify(alone.take()), "local: only allowed in a kernel of groups");

  LoopBuilder numbered;
  numbered.groups_of(4);
  numbered.store(numbered.write(DType::i32), numbered.item(), numbered.number(Type::i32, 0));
  expect_says(verify(numbered.take()), "item: not allowed in a kernel of groups");

  LoopBuilder inner;
  inner.groups_of(4);
  const Id loop = inner.loop(inner.index(2));
  inner.shared(Type::f32, 4);
  inner.end(loop);
  expect_says(verify(inner.take()), "shared: not allowed in a loop");

  LoopKernel added = reversed();
  for (Node& n : added.nodes)
    if (n.op == Op::load_shared) n.in[0] = 0;
  expect_says(verify(added), "which is no shared array");
  LoopBuilder value;
  value.groups_of(4);
  const Id array = value.shared(Type::f32, 4);
  value.store(value.write(DType::f32), value.local(), array);
  expect_says(verify(value.take()), "a shared array");
}

TEST(CodegenGroups, ADialectHasOnlySoMuch) {
  Dialect small = opencl_c;
  small.group_items = 2;
  expect_says(render(reversed(), small).status(), "opencl_c has groups of 2 items at most, got 4");
  small = opencl_c, small.shared_bytes = 8;
  expect_says(render(reversed(), small).status(), "opencl_c lets a group share 8 bytes at most, got 16");
}

TEST(CodegenGroups, TheTextSaysHowManyItemsAGroupHas) {
  const Result<std::string> text = render(reversed(), opencl_c);
  ASSERT_TRUE(text.ok()) << text.status().text();
  EXPECT_EQ(text.value(), R"(#pragma OPENCL FP_CONTRACT OFF
__kernel __attribute__((reqd_work_group_size(4, 1, 1))) void weft_loop_0(__global const float* b0, )"
                          R"(__global float* b1, const long o0, const long o1, const int s0) {
  b0 += o0;
  b1 += o1;
  const int v0 = (int)get_local_id(0);
  const int v1 = (int)get_group_id(0);
  const int v2 = 4;
  const int v3 = v1 * v2;
  const int v4 = v3 + v0;
  __local float v5[4];
  const float v6 = b0[v4];
  v5[v0] = v6;
  barrier(CLK_LOCAL_MEM_FENCE);
  const int v9 = 3;
  const int v10 = v9 - v0;
  const float v11 = v5[v10];
  b1[v4] = v11;
}
)");
}

}  // namespace
}  // namespace weft::codegen::codegen_groups_test
