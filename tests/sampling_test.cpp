#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "test_backends.h"
#include "weft/random.h"
#include "weft/sampling.h"

// The chosen token follows the definitions; and a text ends at its stop strings.

namespace weft::sampling_test {
namespace {

using nlohmann::json;
using testing::error_of;
using Ids = std::vector<int32_t>;

// The probabilities that transformers' processors and warpers leave, written as they are there: over the
// whole vocabulary, sorted from the least likely up.
std::vector<double> warped(std::vector<double> s, const Ids& seen, const io::Sampling& how) {
  const size_t n = s.size();
  const auto softmax = [&] {
    const double best = *std::ranges::max_element(s);
    std::vector<double> p(n);
    double total = 0;
    for (size_t i = 0; i < n; ++i) total += p[i] = std::exp(s[i] - best);
    for (double& v : p) v /= total;
    return p;
  };
  std::vector<bool> done(n);
  for (const int32_t id : seen) {
    const auto i = static_cast<size_t>(id);
    if (!done[i]) s[i] = s[i] < 0 ? s[i] * how.repetition_penalty : s[i] / how.repetition_penalty;
    done[i] = true;
  }
  for (double& v : s) v /= how.temperature;
  if (how.top_k > 0) {
    auto sorted = s;
    std::ranges::sort(sorted, std::greater());
    const double least = sorted[std::min(n, static_cast<size_t>(how.top_k)) - 1];
    for (double& v : s)
      if (v < least) v = -HUGE_VAL;
  }
  if (how.top_p < 1) {
    const auto p = softmax();
    std::vector<size_t> order(n);
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, std::less(), [&](size_t i) { return p[i]; });
    double sum = 0;
    for (size_t r = 0; r + 1 < n; ++r)
      if ((sum += p[order[r]]) <= 1 - how.top_p) s[order[r]] = -HUGE_VAL;
  }
  const auto p = softmax();
  const double most = *std::ranges::max_element(p);
  for (size_t i = 0; i < n; ++i)
    if (p[i] < how.min_p * most) s[i] = -HUGE_VAL;
  return softmax();
}

struct Known {
  io::Sampling how;
  Ids seen;
  std::vector<double> scores, probabilities;
};
std::vector<Known> transformers_answers() {
  std::ifstream file(WEFT_SOURCE_DIR "/conformance/data/sampling.json");
  std::vector<Known> all;
  const json parsed = json::parse(file);
  for (const json& c : parsed.at("cases")) {
    const json& o = c.at("options");
    all.push_back({{.repetition_penalty = o.value("repetition_penalty", 1.0),
                    .temperature = o.value("temperature", 1.0),
                    .top_k = o.value("top_k", int64_t{0}),
                    .top_p = o.value("top_p", 1.0),
                    .min_p = o.value("min_p", 0.0)},
                   c.at("seen"),
                   c.at("scores"),
                   c.at("probabilities")});
  }
  return all;
}

TEST(Sampler, ChoosesByTheDefinitions) {
  const auto all = transformers_answers();
  ASSERT_EQ(all.size(), 13u);
  for (const Known& known : all) {
    const auto have = warped(known.scores, known.seen, known.how);
    for (size_t i = 0; i < have.size(); ++i) {
      EXPECT_NEAR(have[i], known.probabilities[i], 1e-6)
          << "case " << (&known - all.data()) << ", token " << i;
      EXPECT_EQ(have[i] == 0, known.probabilities[i] == 0);
    }
  }
  for (size_t k = 0; k < all.size(); ++k) {
    io::Sampling how = all[k].how;
    how.seed = 40 + k;
    io::Sampler sampler(how);
    Ids seen = {3, 3, 8};
    sampler.saw(seen);
    for (uint64_t draw = 0; draw < 300; ++draw) {
      std::vector<float> scores(40);
      for (size_t i = 0; i < scores.size(); ++i)
        scores[i] = static_cast<float>(8 * (unit(random_word(draw, i)) - 0.5));
      const auto p = warped({scores.begin(), scores.end()}, seen, how);
      double left = unit(random_word(how.seed, draw));
      int32_t want = 0;
      while (left >= p[static_cast<size_t>(want)]) left -= p[static_cast<size_t>(want++)];
      const int32_t got = sampler.pick(scores);
      ASSERT_EQ(got, want) << "draw " << draw << " of case " << k;
      seen.push_back(got);
    }
  }
}

TEST(Sampler, TakesTheLikeliestAtZero) {
  const float scores[] = {100, 3, 7, 7, -HUGE_VALF};
  io::Sampler greedy({.temperature = 0, .never = {0}});
  EXPECT_EQ(greedy.pick(scores), 2);
  EXPECT_EQ(greedy.pick(scores), 2);
  io::Sampler bored({.repetition_penalty = 2, .temperature = 0, .never = {0}});
  EXPECT_EQ(bored.pick(scores), 2);
  EXPECT_EQ(bored.pick(scores), 3);  // 3.5 is left of the first 7
  EXPECT_EQ(bored.pick(scores), 2);
}

TEST(Sampler, RefusesScoresThatAreNone) {
  io::Sampler s({.never = {1}});
  const float nan[] = {1, 2, std::nanf("")}, infinite[] = {HUGE_VALF, 0}, none[] = {-HUGE_VALF, 2};
  EXPECT_NE(error_of([&] { s.pick(nan); }).find("the score of token 2 is nan"), std::string::npos);
  EXPECT_NE(error_of([&] { s.pick(infinite); }).find("the score of token 0 is inf"), std::string::npos);
  EXPECT_NE(error_of([&] { s.pick(none); }).find("of 2 scores none is left"), std::string::npos);
  EXPECT_NE(error_of([&] { s.pick({}); }).find("of 0 scores none is left"), std::string::npos);
}

// ---- where a text ends

struct Cut {
  std::string shown;
  bool stopped;
  friend bool operator==(const Cut&, const Cut&) = default;
};
// `text` in parts of n bytes.
Cut cut(const std::vector<std::string>& stops, const std::string& text, size_t n) {
  io::StopStrings s(stops);
  std::string shown;
  for (size_t at = 0; at < text.size(); at += n) shown += s.push(std::string_view(text).substr(at, n));
  shown += s.finish();
  return {shown, s.stopped()};
}

TEST(StopStrings, CutWhereverTheyLie) {
  for (const size_t n : {1u, 2u, 3u, 7u, 100u}) {
    EXPECT_EQ(cut({"stop"}, "do not stop here", n), (Cut{"do not ", true})) << n;
    EXPECT_EQ(cut({"stop"}, "do not sto", n), (Cut{"do not sto", false})) << n;
    EXPECT_EQ(cut({"aab"}, "aaaab", n), (Cut{"aa", true})) << n;
    EXPECT_EQ(cut({"xyz", "b"}, "abc", n), (Cut{"a", true})) << n;
    EXPECT_EQ(cut({"abc", "b"}, "abc", n), (Cut{"a", true})) << n;  // it is complete first
    EXPECT_EQ(cut({"b", "ab"}, "xab", n), (Cut{"x", true})) << n;   // of two, the longer one
    EXPECT_EQ(cut({"\n\n"}, "a\nb\n\nc", n), (Cut{"a\nb", true})) << n;
    EXPECT_EQ(cut({}, "all of it", n), (Cut{"all of it", false})) << n;
  }
}

// What may begin a stop string waits; nothing else does.
TEST(StopStrings, HoldBackNoMoreThanTheyMust) {
  io::StopStrings s({"END", "NEXT"});
  EXPECT_EQ(s.push("abcE"), "abc");
  EXPECT_EQ(s.push("N"), "");
  EXPECT_EQ(s.push("E"), "E");  // "NE" may begin NEXT
  EXPECT_EQ(s.push("!"), "NE!");
  EXPECT_EQ(s.push("xEND and more"), "x");
  EXPECT_TRUE(s.stopped());
  EXPECT_EQ(s.push("more"), "");
  EXPECT_EQ(s.finish(), "");
}

}  // namespace
}  // namespace weft::sampling_test
