#include "lab/tune.h"

#include <algorithm>

#include "compiler/compile.h"
#include "preference_rig.h"
#include "weft/jit.h"
#include "weft/ledger.h"
#include "weft/ops.h"

// weft tune: the fastest kernel for each call of a program.
namespace weft::testing::tune_test {
namespace {

class Tune : public Preference {};

lab::Tuning tuned(const std::string& backend, std::string* lines = nullptr) {
  auto f = compile(
      [](const std::vector<Tensor>& in) { return std::vector<Tensor>{exp(in[0]) + exp(in[0] * in[0])}; },
      {{"x", {DType::f32, {2, 40}}}}, {.backend = backend, .fuse = false});
  const auto path = (fs::temp_directory_path() / fmt::format("weft_tuned_{}.weft", getpid())).string();
  f.save(path);
  const auto p = value_or_raise(compiler::read_file(path));
  fs::remove(path);
  return value_or_raise(lab::tune(p, std::vector{counting({2, 40}, -5)}, backend, {}, {.seconds = 0.05},
                                  [&](const lab::TunedCall& t, size_t, size_t) {
                                    if (lines) *lines += t.what + "\n";
                                  }));
}

TEST_F(Tune, FindsTheFastestOfTheRightOnes) {
  WEFT_NEEDS_PLUGIN("good_provider");
  std::string lines;
  const auto found = tuned("good_provider", &lines);
  ASSERT_EQ(found.calls.size(), 3u) << lines;  // exp, which is there twice, mul and add
  const auto& exp_call =
      *std::ranges::find_if(found.calls, [](const auto& t) { return t.what.find(" exp") != t.what.npos; });
  EXPECT_EQ(exp_call.count, 2u);
  EXPECT_EQ(exp_call.judged, "the oracle's bound");
  EXPECT_EQ(exp_call.kernels[0].kernel, "good_provider.exp.slow") << "what is taken alone comes first";
  EXPECT_GT(exp_call.fastest, 0u);
  EXPECT_GT(exp_call.gain(), 2);
  size_t wrong = 0;
  for (const auto& k : exp_call.kernels) {
    EXPECT_EQ(k.wrong.empty(), k.kernel != "good_provider.exp.wrong") << k.kernel << ": " << k.wrong;
    EXPECT_NE(k.kernel, "good_provider.exp.loose") << "less precise than the call allows";
    wrong += !k.wrong.empty();
  }
  EXPECT_EQ(wrong, 1u);
  EXPECT_EQ(found.kept, 3u);

  forget();  // as another process would
  auto f = compile([](const std::vector<Tensor>& in) { return std::vector<Tensor>{exp(in[0])}; },
                   {{"x", {DType::f32, {2, 40}}}}, {.backend = "good_provider", .fuse = false});
  reset_ledger();
  (void)f({full(1, {2, 40})});
  for (const auto& r : ledger_rows())
    if (r.op == "exp") {
      EXPECT_EQ(r.kernel, exp_call.kernels[exp_call.fastest].kernel);
      EXPECT_NE(r.why.find("times as fast as good_provider.exp.slow"), std::string::npos) << r.why;
    }
}

// Large calls are checked on integers, for which every order of additions gives the same.
TEST_F(Tune, ChecksLargeProductsOnWholeNumbers) {
  auto f = compile([](const std::vector<Tensor>& in) { return std::vector<Tensor>{matmul(in[0], in[1])}; },
                   {{"a", {DType::f32, {64, 96}}}, {"b", {DType::f32, {96, 64}}}}, {.backend = "native"});
  const auto path = (fs::temp_directory_path() / fmt::format("weft_tuned_{}.weft", getpid())).string();
  f.save(path);
  const auto p = value_or_raise(compiler::read_file(path));
  fs::remove(path);
  const std::vector inputs = {counting({64, 96}), counting({96, 64})};
  const auto found = value_or_raise(lab::tune(p, inputs, "native", {},
                                              {.seconds = 0.02, .oracle_seconds = 1e-6, .keep = false},
                                              [](const lab::TunedCall&, size_t, size_t) {}));
  ASSERT_EQ(found.calls.size(), 1u);
  EXPECT_EQ(found.calls[0].left_out, "");
  EXPECT_EQ(found.calls[0].judged, "reference, on whole numbers, to the bit");
  EXPECT_GE(found.calls[0].kernels.size(), 2u);
  EXPECT_EQ(found.kept, 0u);
  EXPECT_FALSE(fs::exists(file()));
}

}  // namespace
}  // namespace weft::testing::tune_test
