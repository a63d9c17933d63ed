#include "conformance/seam/rig.h"
#include "loops/fused.h"
#include "loops_device.h"

namespace weft::loops_test::loops_fused_test {
namespace {

using conformance::array;
using conformance::Ask;
using conformance::counting;

Result<loops::Stages> stages_of(const Ask& ask) {
  WEFT_TRY(const seam::CallPtr call, conformance::describe(ask));
  return loops::fused_stages(*call->c(), kSubgroup);
}
size_t dispatches(const Ask& ask) {
  const auto stages = stages_of(ask);
  EXPECT_TRUE(stages.ok()) << ask.op << ": " << stages.status().text();
  return stages.ok() ? stages.value().list.size() : 0;
}

// Every op of rows, and of losses, with short and with long rows.
TEST(LoopsFused, RowsTakeTwoDispatchesAtMost) {
  for (const int64_t n : {3, 40, 700, 5000}) {
    const auto x = counting({6, n}), w = counting({n});
    const auto target = array({6}, {0, 1, 2, 0, 1, 2}, DType::i64), loss = array({}, {1});
    EXPECT_EQ(dispatches({"softmax", {x}}), 1u) << n;
    EXPECT_EQ(dispatches({"log_softmax", {x}}), 1u) << n;
    EXPECT_EQ(dispatches({"rms_norm", {x, w}}), 1u) << n;
    EXPECT_EQ(dispatches({"layer_norm", {x, w, w}}), 1u) << n;
    EXPECT_LE(dispatches({"layer_norm_grad", {x, x, w}}), 2u) << n;
    EXPECT_LE(dispatches({"rms_norm_grad", {x, x, w}}), 2u) << n;
    EXPECT_EQ(dispatches({"softmax_grad", {x, x}}), 1u) << n;
    EXPECT_LE(dispatches({"cross_entropy", {x, target}}), 2u) << n;
    EXPECT_LE(dispatches({"cross_entropy_grad", {x, target, loss}}), 2u) << n;
  }
}

TEST(LoopsFused, ALayerIsOneDispatch) {
  for (const int64_t rows : {1, 3, 70})
    EXPECT_EQ(dispatches({"linear", {counting({rows, 50}), counting({40, 50}), counting({40})}}), 1u) << rows;
}

// Scores, their rows, and what is mixed by them; the way back has four products more.
TEST(LoopsFused, AttentionTakesADispatchForEachProductAndOneForItsRows) {
  Ask ask{"attention", {counting({2, 3, 32, 8}), counting({2, 3, 32, 8}), counting({2, 3, 32, 8})}};
  for (const bool seq_first : {false, true}) {
    ask.attrs = {{"causal", int64_t{1}}, {"seq_first", int64_t{seq_first}}};
    EXPECT_LE(dispatches(ask), 4u) << seq_first;
  }
}

// What a few offsets say of a token is found where it is read; a fold of more elements is a dispatch of its
// own.
TEST(LoopsFused, ShortFoldsAreComputedWhereTheyAreRead) {
  const auto append = [](int64_t batch) {
    std::vector<double> length(static_cast<size_t>(batch), 3), offsets(static_cast<size_t>(batch) + 1, 2);
    offsets[0] = 0;
    return Ask{"ragged_cache_append",
               {counting({batch, 2, 9, 4}), counting({2, 2, 4}), array({batch}, length, DType::i32),
                array({batch + 1}, offsets, DType::i32)}};
  };
  EXPECT_EQ(dispatches(append(1)), 1u);
  EXPECT_EQ(dispatches(append(3)), 1u);
  EXPECT_EQ(dispatches(append(4)), 2u);
}

// Moments and weights of the step, in place, and its two counters.
TEST(LoopsFused, AStepOfAdamWTakesTwoDispatches) {
  const auto p = counting({40, 30}), one = array({}, {0.5});
  EXPECT_EQ(dispatches({"adamw_step", {p, p, p, p, one, one, one}}), 2u);
}

CallBox product(DType t, Sizes a, Sizes b, Sizes y, bool ta, bool tb) {
  CallBox box("matmul");
  box.in(t, std::move(a)).in(t, std::move(b)).out(t, std::move(y));
  if (ta) box.attr("transpose_a", int64_t{1});
  if (tb) box.attr("transpose_b", int64_t{1});
  return box;
}

// Tiles with edges on every side, factors either way round, matrices that are shared by others.
TEST_F(Loops, TiledProductsAreRightAtEveryEdge) {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{16, 16, 1}, {17, 65, 15}, {64, 64, 16}, {70, 33, 37}})
    for (const bool ta : {false, true})
      for (const bool tb : {false, true}) {
        const Sizes a = ta ? Sizes{k, m} : Sizes{m, k}, b = tb ? Sizes{n, k} : Sizes{k, n};
        CallBox box = product(f32, a, b, {m, n}, ta, tb);
        run(box, {varied(f32, a, 1), varied(f32, b, 2)});
      }
  CallBox shared = product(f32, {3, 1, 20, 9}, {2, 9, 17}, {3, 2, 20, 17}, false, false);
  run(shared, {varied(f32, {3, 1, 20, 9}, 1), varied(f32, {2, 9, 17}, 2)});
  for (const DType t : {f64, f16, bf16}) {
    CallBox box = product(t, {18, 40}, {40, 19}, {18, 19}, false, false);
    run(box, {varied(t, {18, 40}, 1), varied(t, {40, 19}, 2)});
  }
}

TEST_F(Loops, ProductsOfFewRowsAreRight) {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 1, 1}, {1, 70, 33}, {70, 1, 300}, {5, 9, 2500}})
    for (const bool ta : {false, true})
      for (const bool tb : {false, true}) {
        const Sizes a = ta ? Sizes{k, m} : Sizes{m, k}, b = tb ? Sizes{n, k} : Sizes{k, n};
        CallBox box = product(f32, a, b, {m, n}, ta, tb);
        run(box, {varied(f32, a, 1), varied(f32, b, 2)});
      }
}

// Whoever asks that a row does not depend on how many there are gets one order of sums for all of them.
TEST_F(Loops, AProductWhoseRowsStandAloneIsTiled) {
  CallBox box = product(f32, {1, 300}, {300, 20}, {1, 20}, false, false);
  box.determinism = WEFT_DETERMINISM_BATCH;
  const auto few = loops::fused_stages(box.call(), kSubgroup);
  ASSERT_TRUE(few.ok()) << few.status().text();
  EXPECT_EQ(few.value().determinism, uint32_t{WEFT_DETERMINISM_THREADS});
  box.determinism = WEFT_DETERMINISM_RUN;
  EXPECT_EQ(loops::fused_stages(box.call(), kSubgroup).value().determinism, uint32_t{WEFT_DETERMINISM_RUN});
}

TEST_F(Loops, FoldsOfEveryShape) {
  for (const char* op : {"sum", "prod", "max", "min"})
    for (const DType t : {f32, f16, i64}) {
      const auto fold = [&](Sizes x, Sizes axes, Sizes y) {
        CallBox box = unary(op, t, t, x, y);
        box.attr("axes", axes);
        T values = varied(t, x);
        if (op[0] == 'p')
          for (auto& v : values.values) v = v > 0 ? 1 : -1;
        run(box, {values});
      };
      for (const int64_t n : {2, 5, 65, 2100}) {
        fold({7, n}, {1}, {7});  // rows, by 1, 8, 32 and 256 lanes
        fold({n, 7}, {0}, {7});  // columns
        fold({n}, {0}, {});
      }
      if (op[0] != 'p') fold({150, 151}, {}, {});  // by several groups, and then by one
      fold({3, 4, 5, 6}, {2, 3}, {3, 4});
      fold({3, 4, 5, 6}, {0, 1}, {5, 6});
      fold({1, 5, 1, 6}, {0, 3}, {5, 1});
    }
}

// Element 2^31 of a buffer and those behind it.
TEST_F(Loops, OffsetsAreLongerThanAnInt) {
  const uint64_t begin = uint64_t{1} << 31;
  if (capability_.max_buffer < begin + 64) GTEST_SKIP() << "no buffer is that large here";
  void* handle = nullptr;
  weft_error e = no_error();
  if (backend_->allocate(device_, begin + 64, &handle, &e) != WEFT_OK) GTEST_SKIP() << e.text;
  int64_t shape[] = {4};
  const auto tensor = [&](uint64_t offset) {
    weft_tensor t{};
    t.dl = {handle, {kDLOpenCL, 0}, 1, {kDLUInt, 8, 1}, shape, nullptr, offset};
    t.size = sizeof t, t.alignment = 1;
    return t;
  };
  const weft_tensor from = tensor(begin), to = tensor(begin + 8);
  const uint8_t bytes[] = {3, 1, 4, 1};
  weft_copy in{sizeof in, 0, nullptr, 0, handle, begin, bytes, nullptr, 4};
  ASSERT_EQ(backend_->copy(queue_, &in, &e), WEFT_OK) << e.text;
  CallBox box = unary("reshape", u8, u8, {4}, {4});
  execute(box.call(), {&from}, {&to});
  uint8_t got[4] = {};
  weft_copy out{sizeof out, 0, handle, begin + 8, nullptr, 0, nullptr, got, 4};
  ASSERT_EQ(backend_->copy(queue_, &out, &e), WEFT_OK) << e.text;
  EXPECT_EQ(std::memcmp(got, bytes, 4), 0);
  backend_->free(device_, handle);
}

}  // namespace
}  // namespace weft::loops_test::loops_fused_test
