#include "lab/kernels/record.h"

#include <algorithm>

#include "compiler/compile.h"
#include "lab/kernels/program_calls.h"
#include "preference_rig.h"
#include "weft/jit.h"
#include "weft/ops.h"

// The kernel lab's verdicts as preferences, and the calls of a program as its operations.
namespace weft::testing::lab_record_test {
namespace {

class LabRecord : public Preference {
 protected:
  // As the lab found them: the choice of `native`, and another kernel of it that is twice as fast.
  static lab::Comparison found(lab::Verdict verdict) {
    lab::Comparison c{
        .operation = {"exp", "a small one", {.inputs = {conformance::normal({2, 40})}, .attrs = {}}}};
    c.rows.push_back({.contender = "native", .kernel = kUsual, .nanoseconds = {200, 210, 220}});
    c.rows.push_back({.contender = kOther,
                      .kernel = kOther,
                      .verdict = verdict,
                      .nanoseconds = {100, 100, 130},
                      .ratio = {1.9, 2.1, 2.2}});
    (void)seam::registry().find_kernel(device(), kOther, &c.rows[1].identity);
    return c;
  }
};

TEST_F(LabRecord, TheFastestKernelIsTakenFromNowOn) {
  ASSERT_EQ(chosen().kernel, kUsual);
  const auto kept = value_or_raise(lab::record(found(lab::Verdict::faster)));
  EXPECT_EQ(kept.kernel, kOther);
  EXPECT_EQ(kept.instead, kUsual);
  EXPECT_EQ(kept.nanoseconds, 100u);
  EXPECT_EQ(kept.nanoseconds_instead, 210u);
  forget();  // as another process would
  EXPECT_EQ(chosen().kernel, kOther);
  EXPECT_NE(chosen().why.find("2.10 times as fast"), std::string::npos) << chosen().why;
}

TEST_F(LabRecord, WhatIsNotFasterOrOfAnotherBuildIsNotTaken) {
  for (const auto verdict : {lab::Verdict::same, lab::Verdict::undecided, lab::Verdict::wrong})
    EXPECT_EQ(value_or_raise(lab::record(found(verdict))).kernel, "") << lab::name(verdict);
  auto other_build = found(lab::Verdict::faster);
  other_build.rows[1].identity = "of a kernel that was replaced";
  EXPECT_EQ(value_or_raise(lab::record(other_build)).kernel, "");
  auto no_device = found(lab::Verdict::faster);
  no_device.rows[0].contender = "mine.cpp";
  EXPECT_NE(lab::record(no_device).status().message().find("no device"), std::string::npos);
  EXPECT_EQ(chosen().kernel, kUsual);
}

TEST_F(LabRecord, AllKernelsOfADeviceAreContendersOnce) {
  const lab::Operation o = found(lab::Verdict::same).operation;
  const auto with_choice = value_or_raise(lab::expanded({"native", "native.*"}, o));
  EXPECT_EQ(std::ranges::count(with_choice, "native"), 1);
  EXPECT_EQ(std::ranges::count(with_choice, kOther), 1);
  EXPECT_EQ(std::ranges::count(with_choice, kUsual), 0) << "it is native's choice, which is there";
  const auto alone = value_or_raise(lab::expanded({"native.*"}, o));
  EXPECT_EQ(std::ranges::count(alone, kUsual), 1);
  EXPECT_EQ(alone.size(), with_choice.size());
  const lab::Operation strange = {"sort", "", {.inputs = {conformance::normal({0})}, .attrs = {}}};
  EXPECT_EQ(lab::expanded({"nowhere.*"}, strange).status().code(), Code::invalid_argument);
}

TEST_F(LabRecord, CallsOfAProgramAreOperations) {
  auto f = compile(
      [](const std::vector<Tensor>& in) {
        const auto y = matmul(in[0], in[1]);
        return std::vector<Tensor>{exp(y) + exp(neg(y)), embedding(in[0], in[2])};
      },
      {{"x", {DType::f32, {6, 4}}}, {"w", {DType::f32, {4, 5}}}, {"ids", {DType::i32, {2}}}},
      {.backend = "native", .fuse = false});
  const auto path = (fs::temp_directory_path() / fmt::format("weft_lab_{}.weft", getpid())).string();
  f.save(path);
  const auto p = value_or_raise(compiler::read_file(path));
  fs::remove(path);
  const std::vector inputs{counting({6, 4}), counting({4, 5}),
                           runtime::HostTensor{{DType::i32, {2}}, std::vector<std::byte>(8)}};
  const auto calls = value_or_raise(lab::operations_of_program(p, inputs));
  EXPECT_EQ(calls.left_out, 1u) << "the embedding, whose places nobody knows";
  std::vector<std::string> labels;
  for (const auto& o : calls.operations) labels.push_back(o.label());
  ASSERT_EQ(labels.size(), 4u);
  EXPECT_TRUE(std::ranges::any_of(labels, [](const auto& l) {
    return l.find("exp f32[6, 5], 2 calls of ") == 0;
  })) << labels[1];
  EXPECT_EQ(calls.operations[0].op, "matmul");
  EXPECT_EQ(calls.operations[0].rows.size(), 2u) << "its rows and columns are judged alone";
}

// [batch, m, k] and [batch, k, n], transposed or not.
TEST(LabRows, OfProductsOfAnyRank) {
  const auto rows_of = [](bool transposed, std::vector<int64_t> a, std::vector<int64_t> b) {
    lab::Operation o{"matmul",
                     "",
                     {.inputs = {conformance::normal(a), conformance::normal(b)},
                      .attrs = {{"transpose_a", int64_t{transposed}}, {"transpose_b", int64_t{transposed}}}}};
    raise_if(lab::take_rows(o));
    return o.rows;
  };
  const auto plain = rows_of(false, {3, 4, 5}, {3, 5, 6});
  ASSERT_EQ(plain.size(), 3u);
  EXPECT_EQ(plain[0].operands, (std::vector{1, -1}));
  EXPECT_EQ(plain[1].operands, (std::vector{-1, 2}));
  EXPECT_EQ(plain[2].operands, (std::vector{0, 0}));
  const auto turned = rows_of(true, {3, 5, 4}, {3, 6, 5});
  ASSERT_EQ(turned.size(), 3u);
  EXPECT_EQ(turned[0].operands, (std::vector{2, -1}));
  EXPECT_EQ(turned[1].operands, (std::vector{-1, 1}));
  EXPECT_TRUE(rows_of(false, {1, 4, 5}, {3, 5, 6}).empty()) << "one matrix goes with all of the other's";
}

}  // namespace
}  // namespace weft::testing::lab_record_test
