#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <mutex>
#include <new>
#include <random>
#include <thread>

#include "base/thread_pool.h"
#include "weft/attr.h"

// Dimensions, small vectors and the thread pool.
namespace weft::base_test {
namespace {

const Dim kBatch = Dim::symbol("batch", 1, 64), kSeq = Dim::symbol("seq", 2, 100);
const std::vector<Symbol> kSymbols = {{"batch", 1, 64}, {"seq", 2, 100}};

// ---- Dim ----

TEST(Dim, EqualValuesHaveOneForm) {
  const struct {
    Dim a, b;
    const char* text;
  } table[] = {
      {kBatch * Dim(16) + kBatch, Dim(17) * kBatch, "batch*17"},
      {kBatch + kSeq, kSeq + kBatch, "batch+seq"},
      {(kBatch + Dim(1)) * (kBatch + Dim(-1)), kBatch * kBatch - Dim(1), "batch*batch+-1"},
      {kBatch - kBatch, Dim(0), "0"},
      {kBatch * Dim(0) + Dim(7), Dim(7), "7"},
      {(kBatch * kSeq) * Dim(2), Dim(2) * kSeq * kBatch, "batch*seq*2"},
      {floor_div(kBatch * Dim(16) + Dim(3), 4), kBatch * Dim(4), "batch*4"},
      {floor_div(kBatch, 1), kBatch, "batch"},
      {floor_div(floor_div(kSeq - 1, 4), 2), floor_div(kSeq - 1, 8), "(seq+-1)//8"},
      {floor_div(floor_div(kSeq, 3) + 5, 4), floor_div(kSeq + 15, 12), "(seq+15)//12"},
      {max(kBatch, kSeq), max(kSeq, kBatch), "max(batch,seq)"},
      {max(kBatch + Dim(64), kBatch), kBatch + Dim(64), "batch+64"},
      {max(kSeq, Dim(1)), kSeq, "seq"},
  };
  for (const auto& row : table) {
    EXPECT_EQ(row.a, row.b) << row.text;
    EXPECT_EQ(row.a.bits(), row.b.bits()) << "interned: " << row.text;
    EXPECT_EQ(row.a.text(), row.text);
  }
  EXPECT_FALSE(kBatch == Dim::symbol("batch", 1, 32)) << "other bounds make another symbol";
}

TEST(Dim, FloorDivisionRoundsDownOnBothSidesOfZero) {
  for (int64_t a = -9; a <= 9; ++a)
    for (const int64_t d : {1, 2, 3, 7})
      EXPECT_EQ(floor_div(Dim(a), d).value(), static_cast<int64_t>(std::floor(double(a) / double(d))))
          << a << "//" << d;
}

TEST(Dim, QuotientsOfQuotientsRoundAsTheyAreWritten) {
  for (int64_t c = -5; c <= 5; ++c)
    for (const int64_t d : {2, 3, 4}) {
      const Dim nested = floor_div(floor_div(kSeq - 7, 3) + c, d);
      for (int64_t seq = 2; seq < 30; ++seq) {
        Bindings at;
        ASSERT_TRUE(at.bind("seq", seq).ok());
        const Dim want = floor_div(floor_div(Dim(seq - 7), 3) + c, d);
        EXPECT_EQ(evaluate(nested, at).value(), want.value()) << nested.text() << " at " << seq;
      }
    }
}

/// A random expression over both symbols. Small factors keep it inside int64.
Dim random_dim(std::mt19937& random, int depth) {
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  if (depth == 0) return pick(3) == 0 ? Dim(pick(5) + 1) : pick(2) ? kBatch : kSeq;
  const Dim a = random_dim(random, depth - 1), b = random_dim(random, depth - 1);
  switch (pick(4)) {
    case 0: return a + b;
    case 1: return depth > 2 ? a * Dim(pick(4) + 1) : a * b;
    case 2: return floor_div(a, pick(5) + 1);
    default: return max(a, b);
  }
}

TEST(Dim, TextReadsBackAndBoundsHold) {
  std::mt19937 random(11);
  for (int i = 0; i < 300; ++i) {
    const Dim d = random_dim(random, 3);
    auto again = parse_dim(d.text(), kSymbols);
    ASSERT_TRUE(again.ok()) << d.text() << ": " << again.status().message();
    EXPECT_EQ(again.value(), d) << d.text() << " read back as " << again.value().text();
    for (const auto& [batch, seq] : {std::pair{1, 2}, {64, 100}, {1, 100}, {17, 33}}) {
      Bindings at;
      ASSERT_TRUE(at.bind("batch", batch).ok() && at.bind("seq", seq).ok());
      const int64_t v = value_or_raise(evaluate(d, at));
      EXPECT_LE(d.min(), v) << d.text();
      EXPECT_GE(d.max(), v) << d.text();
    }
  }
  const Dim batch = Dim::symbol("batch", 1, 64), seq = Dim::symbol("seq", 2, 100);
  const Dim below_zero = floor_div(batch + Dim(-100), 3) * seq;
  EXPECT_EQ(below_zero.min(), -33 * 100);
  EXPECT_EQ(below_zero.max(), -12 * 2);
}

TEST(Dim, ExactDivisionFindsTheFactorOrNothing) {
  const Dim b = Dim::symbol("batch", 1, 8), s = Dim::symbol("seq", 1, 64);
  EXPECT_EQ(exact_div(Dim(12), 4), Dim(3));
  EXPECT_EQ(exact_div(Dim(12), 5), std::nullopt);
  EXPECT_EQ(exact_div(Dim(0), 5), Dim(0));
  EXPECT_EQ(exact_div(Dim(5), 0), std::nullopt);
  EXPECT_EQ(exact_div(b * s * 64, b * s), Dim(64));
  EXPECT_EQ(exact_div(b * s * 64, s * 16), b * 4);
  EXPECT_EQ(exact_div(b * 6, 4), std::nullopt);
  EXPECT_EQ(exact_div(b, s), std::nullopt);
  EXPECT_EQ(exact_div(b, b + 1), std::nullopt);
  // Every product is divided by each of its factors, sums and quotients among them.
  const Dim factors[] = {b, s, b + 1, s * 2 + 3, b * b + s, floor_div(s, 2) + b, max(b, s) + 5, b * s - 1};
  for (const Dim x : factors)
    for (const Dim y : factors)
      for (const Dim z : factors)
        EXPECT_EQ(exact_div(x * y * z, y * x), z) << (x * y).text() << ", " << z.text();
}

TEST(Dim, MinIsMaxTurnedRound) {
  const Dim b = Dim::symbol("batch", 1, 8);
  EXPECT_EQ(min(b, 9), b);
  EXPECT_EQ(min(0, b), Dim(0));
  EXPECT_EQ(min(max(b - 3, 0), b), max(b - 3, 0));
  EXPECT_EQ(min(min(b, 4), b + 1), min(b, 4));
  EXPECT_EQ(max(b, b * 2 + 1), b * 2 + 1);
  const Dim least = min(b, 4);
  EXPECT_EQ(least.min(), 1);
  EXPECT_EQ(least.max(), 4);
  Bindings at;
  ASSERT_TRUE(at.bind("batch", 7).ok());
  EXPECT_EQ(evaluate(least, at).value(), 4);
  const Symbol known[] = {{"batch", 1, 8}};
  EXPECT_EQ(parse_dim(least.text(), known).value(), least) << least.text();
}

TEST(Dim, UnifySolvesForTheOneUnknown) {
  const struct {
    Dim dim;
    int64_t value, batch;
  } solvable[] = {{kBatch, 5, 5},
                  {kBatch * Dim(16), 48, 3},
                  {kBatch * Dim(3) + Dim(2), 20, 6},
                  {floor_div(kBatch, 2), 32, 64},
                  {kBatch * kBatch, 49, 7}};
  for (const auto& row : solvable) {
    Bindings b;
    ASSERT_TRUE(unify(row.dim, row.value, b).ok()) << row.dim.text();
    EXPECT_EQ(*b.find("batch"), row.batch) << row.dim.text();
    EXPECT_TRUE(unify(row.dim, row.value, b).ok()) << "known now, and checked";
    EXPECT_FALSE(unify(row.dim, row.value + 1, b).ok()) << row.dim.text();
  }
  const struct {
    Dim dim;
    int64_t value;
    const char* words;
  } refused[] = {
      {kBatch * Dim(16), 17, "can't be 17 for any batch in 1..64"},
      {kBatch, 65, "can't be 65"},
      {kBatch, 0, "can't be 0"},
      {Dim(4), 5, "dimension 4 is 4, got 5"},
      {floor_div(kBatch, 2), 4, "is 4 for batch = 8 and for 9: another size must tell which it is"},
      {kBatch * kSeq, 6, "two unknown symbols"}};
  for (const auto& row : refused) {
    Bindings b;
    const Status s = unify(row.dim, row.value, b);
    EXPECT_NE(s.message().find(row.words), std::string::npos) << s.message();
    EXPECT_TRUE(b.all().empty()) << "a failure binds nothing";
  }
}

TEST(Dim, BadTextsAreRefusedInWords) {
  const std::pair<const char*, const char*> table[] = {
      {"", "unknown symbol ''"},        {"width", "unknown symbol 'width'"},
      {"batch+", "unknown symbol ''"},  {"(batch", "missing ')'"},
      {"batch//0", "positive integer"}, {"batch//seq", "positive integer"},
      {"batch 2", "unexpected ' 2'"},   {"max(batch", "missing ','"},
      {"max(batch,2", "missing ')'"},   {"99999999999999999999", "unknown symbol"}};
  for (const auto& [text, words] : table) {
    const auto d = parse_dim(text, kSymbols);
    ASSERT_FALSE(d.ok()) << text;
    EXPECT_NE(d.status().message().find(words), std::string::npos) << text << ": " << d.status().message();
  }
  EXPECT_FALSE(parse_dim(std::string(5000, '('), kSymbols).ok()) << "depth is bounded";
}

TEST(Dim, ASymbolThatNoTextCanSpellOrNoValueFitsIsAnError) {
  const std::string long_name(65, 'n');
  const struct {
    std::string name;
    int64_t min, max;
    const char* words;
  } table[] = {{"n", 4, 1, "symbol n is in 4..1; wanted 0 <= min <= max <= 2^61"},
               {"n", -1, 1, "symbol n is in -1..1"},
               {"n", 0, (int64_t{1} << 61) + 1, "wanted 0 <= min <= max"},
               {"", 1, 4, "symbol '' has no name"},
               {"my-batch", 1, 4, "symbol 'my-batch' has no name"},
               {"2n", 1, 4, "symbol '2n' has no name"},
               {"max", 1, 4, "symbol 'max' has no name"},
               {long_name, 1, 4, "has no name"}};
  for (const auto& bad : table) {
    try {
      (void)Dim::symbol(bad.name, bad.min, bad.max);
      ADD_FAILURE() << bad.name << " in " << bad.min << ".." << bad.max;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(bad.words), std::string::npos) << e.what();
    }
  }
  EXPECT_EQ(Dim::symbol("_n1", 0, int64_t{1} << 61).text(), "_n1");
  const std::vector<Symbol> reversed = {{"n", 4, 1}};
  EXPECT_FALSE(parse_dim("n", reversed).ok());
}

TEST(Dim, AnIntegerThatDoesNotFitIsAnError) {
  EXPECT_EQ(Dim(Dim::kMax).value(), Dim::kMax);
  EXPECT_EQ(Dim(Dim::kMin).value(), Dim::kMin);
  EXPECT_THROW((void)Dim(Dim::kMax + 1), Error);
  EXPECT_THROW((void)Dim(Dim::kMin - 1), Error);
  EXPECT_THROW((void)(Dim(Dim::kMax) + Dim(1)), Error);
  EXPECT_FALSE(parse_dim("4611686018427387904", kSymbols).ok());
}

TEST(Dim, EvaluateNamesTheSymbolThatIsMissing) {
  const auto v = evaluate(kBatch + kSeq, Bindings());
  EXPECT_NE(v.status().message().find("has no value"), std::string::npos);
  Bindings b;
  ASSERT_TRUE(b.bind("batch", 2).ok());
  EXPECT_NE(b.bind("batch", 3).message().find("batch is both 2 and 3"), std::string::npos);
}

TEST(Dim, ShapesMultiplyAndStride) {
  const int64_t dims[] = {2, 3, 4}, holes[] = {2, 0, 4};
  EXPECT_EQ(element_count(std::span<const int64_t>(dims)), 24);
  EXPECT_EQ(element_count(std::span<const int64_t>(holes)), 0);
  const auto strides = contiguous_strides(dims);
  EXPECT_EQ(text(std::span<const int64_t>(strides)), "[12, 4, 1]");
  const Shape s{kBatch, Dim(16)};
  EXPECT_EQ(element_count(std::span<const Dim>(s)).text(), "batch*16");
  EXPECT_EQ(text(TensorType{DType::bf16, s}), "bf16[batch, 16]");
}

// ---- SmallVector ----

TEST(SmallVector, GrowsOutOfItsPlaceAndKeepsItsElements) {
  SmallVector<int, 4> v;
  for (int i = 0; i < 100; ++i) {
    v.push_back(i);
    ASSERT_EQ(v.size(), static_cast<size_t>(i) + 1);
    for (int k = 0; k <= i; ++k) ASSERT_EQ(v[static_cast<size_t>(k)], k);
  }
  EXPECT_EQ(v.back(), 99);
  v.pop_back();
  EXPECT_EQ(v.back(), 98);
}

TEST(SmallVector, CopiesAndMovesInlineAndOnTheHeap) {
  for (const size_t n : {size_t{0}, size_t{3}, size_t{4}, size_t{5}, size_t{50}}) {
    SmallVector<int64_t, 4> a(n, 7);
    SmallVector<int64_t, 4> copy = a, other(2, 1);
    EXPECT_EQ(copy, a);
    if (n) copy[0] = 8;
    EXPECT_TRUE(n == 0 || a[0] == 7) << "a copy has its own elements";
    other = a;
    EXPECT_EQ(other, a);
    const SmallVector<int64_t, 4> moved = std::move(other);
    EXPECT_EQ(moved, a);
    EXPECT_TRUE(other.empty());  // NOLINT: a moved-from vector is empty, and can be used
    other.push_back(5);
    EXPECT_EQ(other.size(), 1u);
    a = *&a;
    EXPECT_EQ(a, moved);
  }
}

// ---- parallel_for ----

class Threads : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { set_thread_count(GetParam()); }
  void TearDown() override { set_thread_count(0); }
};

struct Counts {
  explicit Counts(int64_t n) : hits(static_cast<size_t>(n)) {}
  std::vector<std::atomic<int>> hits;
  static void visit(void* self, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) ++static_cast<Counts*>(self)->hits[static_cast<size_t>(i)];
  }
  bool all(int expected) const {
    return std::all_of(hits.begin(), hits.end(), [&](const auto& h) { return h == expected; });
  }
};

TEST_P(Threads, EveryIndexIsVisitedOnce) {
  for (const int64_t n : {0, 1, 2, 7, 64, 1000, 10007})
    for (const int64_t grain : {0, 1, 3, 64, 20000}) {
      Counts counts(n);
      parallel_for(n, grain, Counts::visit, &counts);
      EXPECT_TRUE(counts.all(1)) << n << " by " << grain;
    }
  EXPECT_EQ(thread_count(), GetParam());
}

TEST_P(Threads, NestedCallsRunWhereTheyAre) {
  Counts counts(400);
  parallel_for(
      20, 1,
      [](void* outer, int64_t begin, int64_t end) {
        const auto here = std::this_thread::get_id();
        struct Row {
          void* counts;
          int64_t at;
          std::thread::id thread;
          bool same = true;
        };
        for (int64_t i = begin; i < end; ++i) {
          Row row{outer, i, here};
          parallel_for(
              20, 1,
              [](void* r, int64_t b, int64_t e) {
                auto& own = *static_cast<Row*>(r);
                own.same &= own.thread == std::this_thread::get_id();
                Counts::visit(own.counts, own.at * 20 + b, own.at * 20 + e);
              },
              &row);
          EXPECT_TRUE(row.same);
        }
      },
      &counts);
  EXPECT_TRUE(counts.all(1));
}

TEST_P(Threads, CallersOnManyThreadsDoNotMeet) {
  Counts counts[4] = {Counts(5000), Counts(5000), Counts(5000), Counts(5000)};
  std::vector<std::thread> callers;
  for (auto& c : counts)
    callers.emplace_back([&c] {
      for (int i = 0; i < 20; ++i) parallel_for(5000, 10, Counts::visit, &c);
    });
  for (auto& t : callers) t.join();
  for (auto& c : counts) EXPECT_TRUE(c.all(20));
}

// An exception on any thread reaches the caller, and the next job runs.
TEST_P(Threads, WhatAPieceThrowsIsTheCallers) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_THROW(parallel_for(
                     64, 1,
                     [](void*, int64_t, int64_t end) {
                       if (end == 64) throw std::bad_alloc();
                     },
                     nullptr),
                 std::bad_alloc);
    Counts counts(64);
    parallel_for(64, 1, Counts::visit, &counts);
    EXPECT_TRUE(counts.all(1));
  }
}

INSTANTIATE_TEST_SUITE_P(OneToEight, Threads, ::testing::Range(1, 9));

// A child has none of its parent's threads, nor their stacks: many, so that those are really given back.
TEST(Fork, AChildProcessComputesToo) {
  const auto count = [] {
    std::atomic<int64_t> seen = 0;
    const ParallelBody body = [](void* context, int64_t begin, int64_t end) {
      *static_cast<std::atomic<int64_t>*>(context) += end - begin;
    };
    parallel_for(1000, 1, body, &seen);
    return seen.load();
  };
  set_thread_count(16);
  EXPECT_EQ(count(), 1000);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(20);  // a child that waits for its parent's threads never ends
    bool right = count() == 1000;
    set_thread_count(2);
    right = right && count() == 1000;
    _exit(right ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(count(), 1000);
  set_thread_count(0);
}

TEST(ThreadPool, PiecesDoNotDependOnWhoRunsThem) {
  // Sums of floats in pieces are the same bits in every run only if the pieces are the same.
  set_thread_count(3);
  static std::mutex mutex;
  std::vector<std::pair<int64_t, int64_t>> pieces[2];
  for (auto& list : pieces) {
    parallel_for(
        1000, 7,
        [](void* l, int64_t b, int64_t e) {
          const std::lock_guard lock(mutex);
          static_cast<std::vector<std::pair<int64_t, int64_t>>*>(l)->emplace_back(b, e);
        },
        &list);
    std::sort(list.begin(), list.end());
  }
  set_thread_count(0);
  EXPECT_EQ(pieces[0], pieces[1]);
  EXPECT_GT(pieces[0].size(), 1u);
}

}  // namespace
}  // namespace weft::base_test
