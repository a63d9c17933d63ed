#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "browser.h"
#include "lab/results/change.h"
#include "lab/results/file.h"
#include "lab/results/markdown.h"
#include "lab/results/result.h"
#include "lab/results/schema.h"
#include "run_command.h"
#include "weft/backends.h"

// What the lab writes, reads again, compares and shows.
namespace weft::lab::lab_results_test {
namespace {

using nlohmann::json;

Row row_of(const std::string& contender, Verdict verdict, double nanoseconds, Interval ratio) {
  Row r{.contender = contender, .kernel = contender + ".k", .identity = "1f", .verdict = verdict};
  for (int i = 0; i < 1000; ++i) r.nanoseconds.push_back(nanoseconds + i);
  r.accuracy.elements = 5, r.accuracy.share_of_bound = 0.5, r.ratio = ratio;
  return r;
}

// A made-up comparison of three: one is twice as fast as the first, one is wrong.
json made_up(double factor = 1, double width = 0.001) {
  Operation o{"softmax", "a small one", {.inputs = {conformance::normal({96, 64})}}, DType::f32, {{{0}, 0}}};
  Comparison c{.operation = o, .work = {.bytes = 4000, .flops = 8000}, .processes = 6, .rows = {}};
  const double ratio = 2 * factor;
  c.rows.push_back(row_of("base", Verdict::same, 2000 * factor, {1, 1, 1}));
  c.rows.push_back(row_of("quick", Verdict::faster, 1000, {ratio * (1 - width), ratio, ratio * (1 + width)}));
  Row wrong{.contender = "bad", .verdict = Verdict::wrong, .why = "a <b> | c"};
  wrong.accuracy.share_of_bound = std::numeric_limits<double>::infinity();
  c.rows.push_back(wrong);
  Setting setting{
      .machine = {.processor = "P", .system = "S", .memory_bytes = 1 << 30}, .version = "1", .commit = "abc"};
  setting.machine.limits = Limits{.copy = 8, .cached_copy = 80, .gigaflops = 100};
  return result_of(c, {}, setting);
}

class LabResults : public ::testing::Test {
 protected:
  LabResults()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                (std::string("weft_") + ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~LabResults() override { std::filesystem::remove_all(folder_); }

  std::string at(const std::string& name) const { return folder_ / name; }
  std::string written(const std::string& name, const std::string& text) const {
    std::ofstream(at(name), std::ios::binary) << text;
    return at(name);
  }
  std::string written(const std::string& name, const std::vector<json>& results) const {
    std::string text;
    for (const json& r : results) text += line_of(r) + "\n";
    return written(name, text);
  }

 private:
  std::filesystem::path folder_;
};

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST_F(LabResults, ALineIsWhatTheSchemaSays) {
  const json result = made_up();
  EXPECT_TRUE(fits(result, result_schema(), "result").ok()) << fits(result, result_schema(), "result").text();
  EXPECT_TRUE(line_of(result).starts_with("{\"schema\":\"weft.lab/1\",")) << line_of(result).substr(0, 60);
  EXPECT_EQ(json::parse(line_of(result)), result);
  const json& row = result["rows"][1];
  EXPECT_EQ(row["turns"], 1000);
  const auto sample = row["nanoseconds"]["sample"].get<std::vector<double>>();
  ASSERT_EQ(sample.size(), 400u);
  EXPECT_EQ(sample[0], 1000);
  EXPECT_EQ(sample[200], 1500) << "evenly thinned";
  EXPECT_EQ(row["nanoseconds"]["median"], 1499.5);
  EXPECT_NEAR(row["share_of_bandwidth"].get<double>(), 4000 / 1499.5 / 8, 1e-12);
  EXPECT_NEAR(row["share_of_peak"].get<double>(), 8000 / 1499.5 / 100, 1e-12);
  EXPECT_TRUE(result["rows"][2]["accuracy"]["share_of_bound"].is_null()) << "JSON has no infinity";
  EXPECT_FALSE(result["rows"][2].contains("ratio"));
}

// Each member that the schema requires, taken away or made another type, is missed at its place.
void spoil_each(const json& whole, const json::json_pointer& place, const json& schema, size_t& spoilt) {
  const json& value = whole.at(place);
  for (const auto& name : schema.value("required", json::array())) {
    json without = whole, other = whole;
    without[place].erase(name.get<std::string>());
    EXPECT_FALSE(fits(without, result_schema(), "r").ok()) << place.to_string() << " without " << name;
    other[place / name.get<std::string>()] = json::array({json::array()});
    const auto status = fits(other, result_schema(), "r");
    EXPECT_FALSE(status.ok()) << place.to_string() << "/" << name << " as [[]]";
    EXPECT_NE(status.message().find(name.get<std::string>()), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("wanted"), std::string::npos) << status.message();
    ++spoilt;
  }
  const auto properties = schema.value("properties", json::object());
  for (const auto& [name, member] : properties.items())
    if (value.contains(name) && value[name].is_object()) spoil_each(whole, place / name, member, spoilt);
  const auto rows = properties.find("rows");
  if (rows != properties.end()) spoil_each(whole, place / "rows" / 1, (*rows)["items"], spoilt);
}

TEST_F(LabResults, TheSchemaMissesEachMember) {
  size_t spoilt = 0;
  spoil_each(made_up(), json::json_pointer(), result_schema(), spoilt);
  EXPECT_GT(spoilt, 50u);
  json below = made_up();
  below["rows"][0]["cases"] = -1;
  EXPECT_EQ(fits(below, result_schema(), "r").message(), "r.rows[0].cases: got -1, wanted at least 0");
  EXPECT_EQ(fits(json(1), json{{"maximum", 0}}, "r").code(), Code::internal)
      << "a word that is not looked at";
}

TEST_F(LabResults, AFileIsAddedToAndNotSpoilt) {
  {
    auto file = value_or_raise(ResultFile::open(at("r.jsonl")));
    raise_if(file.add(made_up()));
  }
  auto again = value_or_raise(ResultFile::open(at("r.jsonl")));
  raise_if(again.add(made_up(3)));
  auto results = value_or_raise(read_results(at("r.jsonl")));
  ASSERT_EQ(results.size(), 2u);
  json expected = made_up(3);
  results[1].erase("date"), expected.erase("date");
  EXPECT_EQ(results[1], expected);
  const auto other = written("other", "{\"schema\":\"weft.lab/2\"}\n");
  const auto refused = ResultFile::open(other);
  EXPECT_EQ(refused.status().code(), Code::version);
  EXPECT_EQ(read(other), "{\"schema\":\"weft.lab/2\"}\n");
  EXPECT_EQ(ResultFile::open(at("no/such/folder")).status().code(), Code::io);
}

TEST_F(LabResults, WhatIsNoFileOfResultsIsSaidWithItsLine) {
  const std::string good = line_of(made_up()) + "\n";
  json no_verdict = made_up();
  no_verdict["rows"][1]["verdict"] = "BEST";
  const std::pair<std::string, std::string> kCases[] = {
      {"", ":1: got an empty file, wanted"},
      {good + "not JSON\n", ":2: holds no JSON object: byte 2 is not as JSON wants it; wanted a line"},
      {good + "\n", ":2: holds no JSON object"},
      {good + good.substr(0, 100), ":2: got a last line of 100 bytes without an end, wanted a whole one"},
      {good + good.substr(0, 100) + "\n", ":2: holds no JSON object"},
      {"{\"a\": 1}\n", ":1: got no schema, wanted a result of weft lab with \"schema\": \"weft.lab/1\""},
      {"{\"schema\": \"weft.lab/9\"}\n", ":1: got schema \"weft.lab/9\", wanted"},
      {line_of(no_verdict) + "\n", ":1: result.rows[1].verdict: got \"BEST\", wanted one of [\"FASTER\""},
  };
  for (const auto& [text, wanted] : kCases) {
    const auto path = written("bad", text);
    const auto got = read_results(path);
    ASSERT_FALSE(got.ok()) << wanted;
    EXPECT_TRUE(got.status().message().starts_with(path + wanted)) << got.status().message();
  }
}

// ---- from one file to another

Change change_between(const json& before, const json& after, double margin = 0.015) {
  const auto found = changes_between({before}, {after}, margin);
  for (const Change& c : found.all)
    if (c.contender == "quick") return c;
  return {.why = "not matched"};
}

TEST_F(LabResults, AChangeIsOfRatiosAndGoesByTheirIntervals) {
  EXPECT_EQ(change_between(made_up(), made_up()).verdict, Verdict::same);
  EXPECT_EQ(change_between(made_up(), made_up(1.1)).verdict, Verdict::faster);
  EXPECT_EQ(change_between(made_up(), made_up(0.9)).verdict, Verdict::slower);
  EXPECT_EQ(change_between(made_up(), made_up(0.9), 0.2).verdict, Verdict::same);
  EXPECT_EQ(change_between(made_up(1, 0.1), made_up(0.97, 0.1)).verdict, Verdict::undecided);
  json slow_day = made_up();
  for (auto& row : slow_day["rows"])
    if (row.contains("nanoseconds")) row["nanoseconds"]["median"] = 1e6;
  EXPECT_EQ(change_between(made_up(), slow_day).verdict, Verdict::same) << "times alone say nothing";
  const auto c = change_between(made_up(1, 0.03), made_up(1.5, 0.04));
  EXPECT_NEAR(c.change.middle, 1.5, 1e-12);
  EXPECT_NEAR(std::log(c.change.middle / c.change.low), std::hypot(std::log(1 / 0.96), std::log(1.03)),
              1e-12);
  EXPECT_NEAR(std::log(c.change.high / c.change.middle), std::hypot(std::log(1.04), std::log(1 / 0.97)),
              1e-12);
}

TEST_F(LabResults, TheIntervalOfAChangeHoldsTheTruthAsOftenAsItSays) {
  // Ratios with errors of 1 and 2 percent (99 percent of a normal distribution is 2.576 of them).
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  const auto drawn = [&](double truth, double error) {
    const double middle = truth * std::exp(error * normal(random)), wide = std::exp(2.576 * error);
    json r = made_up();
    r["rows"][1]["ratio"] = {{"low", middle / wide}, {"middle", middle}, {"high", middle * wide}};
    return r;
  };
  int held = 0;
  constexpr int kRuns = 1000;
  for (int i = 0; i < kRuns; ++i) {
    const auto c = change_between(drawn(2, 0.01), drawn(3, 0.02));
    held += c.change.low <= 1.5 && 1.5 <= c.change.high;
  }
  EXPECT_GE(held, 980);
  EXPECT_LT(held, kRuns) << "it is no wider than it need be";
}

TEST_F(LabResults, WhatCannotBeMatchedIsNamed) {
  json other = made_up();
  other["operation"]["inputs"][0]["shape"] = {1, 2}, other["operation"]["label"] = "another";
  auto found = changes_between({made_up(), other}, {made_up()}, 0.015);
  EXPECT_EQ(found.only_before, std::vector<std::string>{"another"});
  EXPECT_EQ(found.all.size(), 2u) << "quick, and bad, which is wrong";
  found = changes_between({made_up()}, {other}, 0.015);
  EXPECT_TRUE(found.all.empty());
  EXPECT_EQ(worst_of(found), Verdict::undecided);

  json two = made_up();
  two["rows"].erase(2);
  EXPECT_EQ(worst_of(changes_between({two}, {two}, 0.015)), Verdict::same);
  json fewer = two;
  fewer["rows"].erase(1);
  found = changes_between({two}, {fewer}, 0.015);
  ASSERT_EQ(found.only_before.size(), 1u);
  EXPECT_TRUE(found.only_before[0].starts_with("quick of softmax")) << found.only_before[0];
  EXPECT_EQ(worst_of(found), Verdict::undecided) << "a comparison that is gone is not passed over";
  found = changes_between({fewer}, {two}, 0.015);
  EXPECT_EQ(found.only_after.size(), 1u);
}

TEST_F(LabResults, OtherBaselinesAndWrongKernelsAreNoRatios) {
  json turned = made_up();
  std::swap(turned["rows"][0], turned["rows"][1]);
  EXPECT_EQ(change_between(turned, made_up()).why, "the baseline was quick and is base");
  EXPECT_EQ(worst_of(changes_between({made_up()}, {made_up()}, 0.015)), Verdict::wrong)
      << "bad is wrong after";
  json mended = made_up();
  mended["rows"][2]["verdict"] = "FASTER", mended["rows"][2]["ratio"] = mended["rows"][1]["ratio"];
  EXPECT_EQ(worst_of(changes_between({made_up()}, {mended}, 0.015)), Verdict::undecided);
  json untimed = mended;
  untimed["rows"][1].erase("ratio");
  EXPECT_EQ(change_between(mended, untimed).why, "it was not timed after");
}

TEST_F(LabResults, OfOneOperationTheLastResultCounts) {
  const auto found = changes_between({made_up(0.5), made_up()}, {made_up(7), made_up(1.1)}, 0.015);
  EXPECT_NEAR(found.all[0].change.middle, 1.1, 1e-12);
}

// ---- reports and the command line

TEST_F(LabResults, MarkdownHasATableOfEachOperation) {
  json later = made_up(1.5);
  later["weft"]["commit"] = "def";
  const auto text = markdown_of({made_up(), later});
  EXPECT_EQ(count(text, "\n## softmax f32[96, 64], a small one\n"), 1u);
  EXPECT_NE(text.find("| quick | FASTER | 1.50 (1.10 to 1.90) | 3.000 (2.997 to 3.003) |"), text.npos)
      << text;
  EXPECT_NE(text.find("| bad | WRONG |  |  |  |  |  |  | a \\<b> \\| c |"), text.npos) << text;
  EXPECT_EQ(count(text, " | quick | FASTER | "), 2u) << "over time";
  EXPECT_NE(text.find("| abc |"), text.npos) << text;
}

TEST_F(LabResults, ARunIsWrittenReportedAndCompared) {
  const auto run = [&](const std::string& words) { return weft_program("lab " + words); };
  const auto r = run("reference native --ops add --quick --seconds 0.1 --threads 1 --out " + at("r.jsonl"));
  ASSERT_TRUE(r.status == 0 || r.status == 3 || r.status == 4 || r.status == 6)
      << r.text;  // 6: a busy machine
  const auto results = value_or_raise(read_results(at("r.jsonl")));
  ASSERT_EQ(results.size(), 1u);
  const json& limits = results[0]["machine"]["limits"];
  EXPECT_GT(limits.value("copy_gigabytes_per_second", 0.0), 0.1);
  EXPECT_GT(limits.value("cached_copy_gigabytes_per_second", 0.0), 0.1);
  EXPECT_GT(limits.value("gigaflops", 0.0), 0.1);
  EXPECT_EQ(results[0]["machine"]["threads"], 1);
  EXPECT_EQ(results[0]["rows"][1]["kernel"], "native.add.tiles");
  EXPECT_TRUE(results[0]["machine"]["devices"].contains("native"));
  EXPECT_EQ(results[0]["operation"]["inputs"][1]["shape"], (std::vector<int>{512, 768}));

  EXPECT_NE(run("report " + at("r.jsonl")).text.find("| native | "), std::string::npos);
  const auto same = run("compare " + at("r.jsonl") + " " + at("r.jsonl") + " --margin 1000 --json");
  if (r.status != 6) {
    EXPECT_EQ(same.status, 0) << same.text;
    EXPECT_EQ(json::parse(same.text)["changes"][0]["verdict"], "SAME") << same.text;
  }
  const auto spoilt = written("spoilt", read(at("r.jsonl")) + "{");
  for (const auto& words : {std::string("report "), "compare " + at("r.jsonl") + " "}) {
    const auto bad = run(words + spoilt);
    EXPECT_EQ(bad.status, 1) << bad.text;
    EXPECT_NE(bad.text.find(spoilt + ":2: got a last line of 1 bytes"), std::string::npos) << bad.text;
  }
}

TEST_F(LabResults, ComparingExitsLikeTheLab) {
  const auto status = [&](double factor, double width) {
    json before = made_up(1, width), after = made_up(factor, width);
    for (json* r : {&before, &after}) (*r)["rows"].erase(2);
    return weft_program("lab compare " + written("before", std::vector{before}) + " " +
                        written("after", std::vector{after}));
  };
  EXPECT_EQ(status(1, 0.001).status, 0);
  EXPECT_EQ(status(0.9, 0.001).status, 3);
  EXPECT_EQ(status(1, 0.2).status, 4);
  const auto faster = status(1.25, 0.001);
  EXPECT_EQ(faster.status, 0);
  EXPECT_NE(faster.text.find("2.000    2.500  1.250 times as fast (1.248 to 1.252)"), std::string::npos)
      << faster.text;
}

TEST_F(LabResults, OptionsOfAnotherWordAndUnknownNamesAreRefused) {
  const std::pair<std::string, std::string> kCases[] = {
      {"list --out x", "--out belongs to weft lab KERNEL...; weft lab list does not take it"},
      {"native --html x", "--html belongs to weft lab report; weft lab KERNEL... does not take it"},
      {"report", "weft lab report takes files of results; got none"},
      {"compare one", "weft lab compare takes two files, OLD and NEW; got 1"},
      {"list more", "weft lab list takes nothing else; got more"},
      {"--providers nobody", "there is no provider 'nobody'; there are python, source, text, weft"},
      {"--device nowhere", "there is no device 'nowhere' here; there are "},
      {"--providers source", "no contender is left to be compared"},
      {"native reference --providers weft",
       "--providers chooses among all contenders; with native it says nothing"},
  };
  for (const auto& [words, wanted] : kCases) {
    const auto r = weft_program("lab " + words);
    EXPECT_EQ(r.status, 2) << words << ": " << r.text;
    EXPECT_NE(r.text.find(wanted), std::string::npos) << r.text;
  }
}

TEST_F(LabResults, ADeviceHasItsOwnKernelsAndThoseOfItsProviders) {
  if (!is_backend_available("onednn")) GTEST_SKIP() << "no provider serves a device here";
  const auto r = weft_program("lab --device reference --ops sum --quick --seconds 0.1 --threads 1 --json");
  const auto result = json::parse(r.text, nullptr, false);
  ASSERT_TRUE(result.is_object()) << r.text;
  std::vector<std::string> names;
  for (const json& row : result["rows"]) names.push_back(row["contender"]);
  EXPECT_EQ(names, (std::vector<std::string>{"reference", "onednn"}));
}

TEST_F(LabResults, APageShowsThem) {
  json later = made_up(1.5), larger = made_up(), name = made_up();
  later["weft"]["commit"] = "def", later["date"] = "2999-01-01T00:00:00Z";
  larger["operation"]["inputs"][0]["shape"] = {960, 64}, larger["bytes"] = 40000;
  larger["rows"][1]["contender"] = "</script><b>";
  const auto page = at("page.html");
  // The later one is named first: their dates count.
  const auto r = weft_program("lab report " + written("later", std::vector{later}) + " " +
                              written("two", std::vector{made_up(), larger}) + " --html " + page);
  ASSERT_EQ(r.status, 0) << r.text;
  const auto text = read(page);
  EXPECT_EQ(text.find("http"), text.npos) << "it needs nothing else";
  EXPECT_EQ(count(text, "</script>"), 2u) << "a name ended the data";
  if (!has_browser()) GTEST_SKIP() << "chromium is not installed: the page is not drawn";
  const auto dom = in_browser(page);
  EXPECT_EQ(dom.find("data-error"), dom.npos) << dom.substr(dom.find("data-error"), 200);
  // Roofline, one op at two sizes, accuracy, distances, one operation over time, two operations.
  EXPECT_NE(dom.find("data-drawn=\"7\""), dom.npos) << dom.substr(dom.find("<body"), 200);
  EXPECT_EQ(count(dom, "class=\"chart\""), 7u);
  EXPECT_EQ(count(dom, "class=\"limit roof"), 3u);
  EXPECT_EQ(count(dom, "class=\"band\""), 4u) << "two of each operation were timed";
  EXPECT_EQ(count(dom, "v FASTER\">FASTER"), 2u);
  EXPECT_EQ(count(dom, "<path class=\"mark\""), 2u * 4 + 4 + 4 + 4 + 2)
      << "two keys, roofline, sizes, accuracy, time";
  EXPECT_NE(dom.find("3.00\u00d7"), dom.npos) << "of the later run";
  EXPECT_EQ(dom.find("NaN"), dom.npos);
}

}  // namespace
}  // namespace weft::lab::lab_results_test
