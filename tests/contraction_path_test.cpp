#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "ops/shared/einsum.h"
#include "weft/shared/contraction.hpp"

// Contraction orders against those of PyPI's opt_einsum (scripts/path_oracle), and equations.
namespace weft::ir::contraction_path_test {
namespace {

using namespace shared;

LabelSet letters(const std::string& s) {
  LabelSet set = 0;
  for (const char c : s) set |= LabelSet{1} << (c - 'a');
  return set;
}

TEST(Contraction, CostsWhatOptEinsumCosts) {
  std::ifstream file(WEFT_SOURCE_DIR "/conformance/data/paths.json");
  const auto data = nlohmann::json::parse(file);
  std::map<std::string, int> compared;
  for (const auto& j : data["cases"]) {
    Contraction c;
    c.sizes.assign(26, 1);
    for (const auto& o : j["operands"]) c.operands.push_back(letters(o));
    c.result = letters(j["result"]);
    for (const auto& [letter, size] : j["sizes"].items()) c.sizes[size_t(letter[0] - 'a')] = size;
    for (const auto& [name, wanted] : j["cost"].items()) {
      SCOPED_TRACE(name + " " + j.dump());
      const auto search = name == "greedy"    ? PathSearch::greedy
                          : name == "optimal" ? PathSearch::optimal
                                              : PathSearch::connected;
      const auto path = find_path(c, search);
      ASSERT_EQ(path.size() + 1, c.operands.size());
      const PathCost cost = cost_of(c, path);
      EXPECT_EQ(name == "dp" ? cost.products : cost.flops, wanted.get<double>());
      ++compared[name];
    }
  }
  for (const auto& [name, n] : compared)
    std::printf("[contraction] %s: %d paths compared\n", name.c_str(), n);
  EXPECT_EQ(compared["greedy"], 200);
}

TEST(Contraction, AutomaticIsOptimalForFewAndNeverStuck) {
  Contraction chain;  // a b, b c, c d, ... with a long axis in the middle
  chain.sizes.assign(30, 4);
  chain.sizes[10] = 100;
  for (size_t n = 1; n <= 20; ++n) {
    chain.operands.push_back(LabelSet{3} << n);
    chain.result = LabelSet{2} | LabelSet{1} << (n + 1);
    const auto path = find_path(chain);
    ASSERT_EQ(path.size(), n - 1);
    if (n >= 2 && n <= 6) {
      EXPECT_EQ(cost_of(chain, path).flops, cost_of(chain, find_path(chain, PathSearch::optimal)).flops);
    }
  }
}

std::string error(const char* equation, std::vector<Shape> shapes) {
  const auto e = parse_einsum(equation, shapes);
  return e.ok() ? "" : e.status().message();
}

TEST(Einsum, EquationsAreRead) {
  const std::vector<Shape> two = {{2, 3}, {3, 4}};
  for (const char* good : {"ij,jk->ik", "ij,jk", " i j , j k -> k i ", "...j,j...->...", "ij,jk->"})
    EXPECT_EQ(error(good, good[0] == '.' ? std::vector<Shape>{{2, 3}, {3, 1}} : two), "") << good;
  auto implicit = parse_einsum("bA...,A...->", std::vector<Shape>{{2, 3, 5}, {3, 1}});
  ASSERT_TRUE(implicit.ok()) << implicit.status().text();
  EXPECT_EQ(implicit->operands[1][1], Einsum::kBroadcast);
  auto sorted = parse_einsum("b...,aB", std::vector<Shape>{{2, 3, 5}, {3, 4}});
  ASSERT_TRUE(sorted.ok());
  std::vector<int64_t> sizes;
  for (const int label : sorted->result) sizes.push_back(sorted->sizes[static_cast<size_t>(label)].value());
  EXPECT_EQ(sizes, (std::vector<int64_t>{3, 5, 4, 3, 2}));  // "...", then B, a, b
}

TEST(Einsum, ErrorsSayWhatIsWrong) {
  const std::vector<Shape> two = {{2, 3}, {3, 4}};
  EXPECT_NE(error("ij,jk,kl", two).find("is for 3 operands, got 2"), std::string::npos);
  EXPECT_NE(error("ij,ij", two).find("one letter for"), std::string::npos);
  EXPECT_NE(error("ij,jk->ix", two).find("names each axis once"), std::string::npos);
  EXPECT_NE(error("ij,jk->ii", two).find("names each axis once"), std::string::npos);
  EXPECT_NE(error("ijl,jk", two).find("does not name the axes"), std::string::npos);
  EXPECT_NE(error("i1,jk", two).find("letters and one"), std::string::npos);
  EXPECT_NE(error("ii", {{2, 3}}).find("a diagonal wants equal sizes"), std::string::npos);
}

}  // namespace
}  // namespace weft::ir::contraction_path_test
