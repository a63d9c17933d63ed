#include <gtest/gtest.h>

#include <random>
#include <set>

#include "../../cuda/chain/plan.hpp"

// Plans of chains of products, drawn at random over a small memory so that steps often read what others
// wrote, in whole or in part, and overwrite what others read. Each plan is held to what running the steps one
// by one would do.
namespace weft::cuda::chains {
namespace {

constexpr int64_t kCell = 8;    // bytes; rows begin at cells
constexpr int64_t kCells = 48;  // that rows are read from and written to
constexpr int kBlocks = 3;
constexpr int kNobody = -1;  // wrote these bytes: they are as they were before the chain
alignas(128) char memory[kCells * kCell];
alignas(128) char weights[1 << 16];

int bytes_of(Format f) { return f == Format::f32 ? 4 : 2; }

struct Row {
  int64_t at = 0, elements = 0;
  Format format = Format::bf16;
  char* begin() const { return memory + at * kCell; }
  Range range() const { return {begin(), begin() + elements * bytes_of(format)}; }
};

struct Drawn {
  Row x, operand, result;
  bool adds;
};

// A step that multiplies x with weights, and adds the operand where it has one.
RawStep raw(const Drawn& d) {
  RawStep r;
  r.products = {};
  r.products.n = 1;
  skinny::Item& item = r.products.all[0];
  item.x = d.x.begin(), item.k = static_cast<int>(d.x.elements), item.n = static_cast<int>(d.result.elements);
  item.rows = 1, item.products = 1, item.weights[0] = weights;
  item.n_results = 1, item.results[0] = d.result.begin(), item.result_formats[0] = d.result.format;
  item.steps[0] = {StepCode::product, 0, 0, d.result.format, 0};
  item.leaves = item.n_steps = 1;
  if (d.adds) {
    item.operands[0] = d.operand.begin(), item.operand_formats[0] = d.operand.format;
    item.steps[1] = {StepCode::element, 0, 0, d.operand.format, 0};
    item.steps[2] = {StepCode::add, 0, 1, d.result.format, 0};
    item.leaves = 2, item.n_steps = 3, item.result_steps[0] = 2;
  }
  return r;
}

std::vector<Drawn> draw(std::mt19937& random, int steps) {
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  const auto format = [&] { return below(4) ? Format::bf16 : Format::f32; };
  const auto row = [&](Format f) {
    const int64_t cells = 1 + below(8);
    return Row{below(kCells - cells + 1), cells * kCell / bytes_of(f), f};
  };
  std::vector<Drawn> all;
  for (int s = 0; s < steps; ++s) {
    Drawn d{row(Format::bf16), row(format()), row(format()), below(2) == 0};
    if (s > 0 && below(3)) d.x = all.back().result, d.x.format = Format::bf16;  // as decoding has it
    if (d.adds) {
      d.operand.elements = d.result.elements;
      if (d.operand.range().end > memory + sizeof memory) d.operand.at = 0;
      if (d.operand.range().meets(d.result.range()))
        d.adds = false;  // an element is read where it is written
    }
    if (d.x.range().meets(d.result.range())) {
      --s;
      continue;
    }
    all.push_back(d);
  }
  return all;
}

// Which step wrote each byte last, were the steps run one by one.
class Bytes {
 public:
  Bytes() : by_(sizeof memory, kNobody) {}
  void write(const Range& r, int step) {
    std::fill(by_.begin() + at(r.begin), by_.begin() + at(r.end), step);
  }
  std::set<int> writers(const Range& r) const { return {by_.begin() + at(r.begin), by_.begin() + at(r.end)}; }
  bool operator==(const Bytes&) const = default;
  int of(const char* byte) const { return by_[static_cast<size_t>(at(byte))]; }

 private:
  static std::ptrdiff_t at(const char* byte) { return byte - memory; }
  std::vector<int> by_;
};

class Check {
 public:
  Check(const std::vector<Drawn>& drawn, const ChainPlan& plan) : drawn_(drawn), plan_(plan) {}

  void run() {
    for (size_t j = 0; j < plan_.n; ++j) {
      ended_.emplace_back();
      const ChainedItem& item = plan_.steps[j].item;
      source(j, item.x, drawn_[j].x, true);
      if (drawn_[j].adds) source(j, item.operands[0], drawn_[j].operand, false);
      target(j, item.results[0], drawn_[j].result);
    }
    copies();
    for (const char* byte = memory; byte < memory + sizeof memory; ++byte)
      EXPECT_EQ(kept_.of(byte), before_.of(byte)) << "byte " << byte - memory << " is left by another step";
  }

 private:
  // What the step reads is of one writer: exchange memory of that, or memory that nobody has written.
  void source(size_t j, const Source& from, const Row& row, bool all_blocks) {
    const auto writers = before_.writers(row.range());
    ASSERT_EQ(writers.size(), 1u) << "step " << j << " reads parts of several steps";
    const int writer = *writers.begin();
    if (writer == kNobody) {
      EXPECT_EQ(from.place, -1);
      EXPECT_EQ(from.plain, row.begin());
      outside_.push_back({row.range(), j});
      return;
    }
    const auto w = static_cast<size_t>(writer);
    const Row& result = drawn_[w].result;
    const Target& target = plan_.steps[w].item.results[0];
    ASSERT_GE(target.place, 0) << "step " << j << " reads what step " << w << " leaves in no exchange memory";
    EXPECT_EQ(from.place, target.place + (row.begin() - result.begin())) << "step " << j;
    EXPECT_EQ(row.format, result.format);
    if (!all_blocks) return;
    // A block that writes results of j has seen what it read of w, so what had ended when that was written
    // has ended.
    ended_[j].insert(ended_[w].begin(), ended_[w].end());
    if (row.range().end - row.range().begin == result.range().end - result.range().begin) ended_[j].insert(w);
  }
  void target(size_t j, const Target& to, const Row& row) {
    before_.write(row.range(), static_cast<int>(j));
    if (to.place >= 0) {
      const auto bytes = static_cast<int>(row.range().end - row.range().begin);
      for (const auto& [place, end] : places_)
        EXPECT_TRUE(to.place >= end || to.place + bytes <= place) << "two values share exchange memory";
      places_.push_back({to.place, to.place + bytes});
      EXPECT_LE(to.place + bytes, plan_.half);
      EXPECT_EQ(to.place % 16, (row.begin() - memory) % 16) << "parts of it are read 16 bytes at a time";
    }
    if (!to.plain) return;
    EXPECT_EQ(to.plain, row.begin());
    overwrites(row.range(), ended_[j]);
    kept_.write(row.range(), static_cast<int>(j));
  }
  void copies() {
    for (const ChainedCopy& c : plan_.copies) {
      const char* to = static_cast<const char*>(c.to);
      const int step = before_.of(to);
      ASSERT_NE(step, kNobody);
      const auto s = static_cast<size_t>(step);
      const Row& row = drawn_[s].result;
      EXPECT_EQ(c.place, plan_.steps[s].item.results[0].place + (to - row.begin()));
      EXPECT_EQ(c.wide != 0, row.format == Format::f32);
      overwrites({to, to + c.bytes}, ended_[plan_.n - 1]);
      kept_.write({to, to + c.bytes}, step);
    }
  }
  // No step that reads these bytes as they were may still run.
  void overwrites(const Range& r, const std::set<size_t>& ended) {
    for (const auto& [range, step] : outside_)
      EXPECT_TRUE(!range.meets(r) || ended.contains(step))
          << "what step " << step << " may still read is overwritten";
  }

  const std::vector<Drawn>& drawn_;
  const ChainPlan& plan_;
  Bytes before_, kept_;                  // as the steps leave it, and as the plan does
  std::vector<std::set<size_t>> ended_;  // surely, when a block writes results of a step
  std::vector<std::pair<Range, size_t>> outside_;
  std::vector<std::pair<int, int>> places_;
};

TEST(ChainPlan, DoesWhatItsStepsDo) {
  std::mt19937 random(5);
  size_t steps = 0, longest = 0, copies = 0;
  for (int i = 0; i < 20000 && !::testing::Test::HasFailure(); ++i) {
    const auto drawn = draw(random, 1 + static_cast<int>(random() % 8));
    std::vector<RawStep> raws;
    for (const Drawn& d : drawn) raws.push_back(raw(d));
    const ChainPlan plan = plan_chain(raws, kBlocks);
    ASSERT_LE(plan.n, raws.size());
    SCOPED_TRACE("chain " + std::to_string(i));
    Check(drawn, plan).run();
    steps += plan.n, longest = std::max(longest, plan.n), copies += plan.copies.size();
  }
  EXPECT_GT(steps, 20000u);  // it is no plan to refuse them
  EXPECT_EQ(longest, 8u);
  EXPECT_GT(copies, 1000u);
}

// Steps of decoding, whose rows have memory of their own, are taken whole, and each row is shared by all
// blocks.
TEST(ChainPlan, TakesAllStepsOfARow) {
  const Row a{0, 16}, b{4, 16}, c{8, 16};
  const std::vector<Drawn> drawn = {{a, {}, b, false}, {b, {}, c, false}, {c, b, a, true}};
  std::vector<RawStep> raws;
  for (const Drawn& d : drawn) raws.push_back(raw(d));
  const ChainPlan plan = plan_chain(raws, kBlocks);
  ASSERT_EQ(plan.n, 3u);
  EXPECT_EQ(plan.steps[2].item.ending, ChainedItem::sum);
  for (size_t step = 0; step < 3; ++step) {
    std::vector<int> times(16, 0);
    for (int block = 0; block < kBlocks; ++block) {
      const BlockRows& r = plan.rows[step * kBlocks + static_cast<size_t>(block)];
      for (int row = r.first; row < r.first + r.rows; ++row) ++times[static_cast<size_t>(row)];
    }
    EXPECT_EQ(times, std::vector<int>(16, 1)) << "step " << step;
  }
}

}  // namespace
}  // namespace weft::cuda::chains
