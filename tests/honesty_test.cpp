#include <unistd.h>

#include <cfenv>
#include <csignal>
#include <random>
#include <stdexcept>

#include "conformance/check.h"
#include "conformance/liars/liar.h"
#include "conformance/seam/guarded.h"
#include "test_backends.h"

// Tests of the checks: every good backend passes all of them, and every liar is caught by the check that its
// entry names, which passes on the backend that the liar wraps.
namespace weft::testing::honesty_test {
namespace {

using namespace conformance;

// Others that judge by the oracle.
const std::set<std::string> kByTheOracle = {"packs_constants", "writes_over_operands"};

// Checks of all cases of all ops, and graphs: ops_test.cpp and graphs_test.cpp run them on every backend, and
// so does scripts/test by `weft check`.
const std::set<std::string> kCostly = {"accumulates_at_size",
                                       "arranged",
                                       "candidates",
                                       "edges",
                                       "gradients",
                                       "graphs",
                                       "guards",
                                       "half_gradients",
                                       "huge",
                                       "keeps_launching",
                                       "keeps_to_its_workspace",
                                       "large",
                                       "leaves_modes_alone",
                                       "ops",
                                       "places",
                                       "plans_stand_alone",
                                       "races",
                                       "reaches_its_kernels",
                                       "reads_operands_anew",
                                       "serves_other_threads",
                                       "sizes",
                                       "used_by_models",
                                       "wild_indices",
                                       "zeros"};
// No named liar fails these either: drawn ones do (ops_test.cpp), and bad plug-ins.
const std::set<std::string> kOthersProve = {"accumulates", "negotiates"};

std::string check_of(const Liar& liar) {
  const std::string_view all = liar.caught_by;
  return std::string(all.substr(0, all.find('/')));
}

// `until_caught`: as long as that takes. Sizes are drawn until their time is over.
CheckRun held_to(const std::string& backend, const std::string& only, bool until_caught = false) {
  CheckRun run(backend, {.only = only, .full = until_caught, .first_failure = true});
  for (const Check* check : all_checks()) run.run(*check);
  return run;
}

TEST(Honesty, GoodBackendsPassEveryCheck) {
  WEFT_NEEDS_PLUGIN("far");
  WEFT_NEEDS_PLUGIN("template");
  for (const auto& backend : backends({"reference", "native", "openmp", "far", "template", "opencl"})) {
    CheckRun run(backend, {});
    for (const Check* check : all_checks())
      if (!kCostly.contains(check->name)) run.run(*check);
    for (const auto& f : run.failures()) ADD_FAILURE() << run.command(f) << "\n  " << f.found.words;
    for (const auto& s : run.skipped())
      fmt::print("  {:<10} {}/{} is left out: {}\n", backend, s.check, s.name, s.found.words);
    EXPECT_GT(run.executed(), 0);
  }
}

TEST(Cases, WhatTheyRaiseIsAFindingAndWhatRunsIsSaidBefore) {
  std::vector<std::string> said;
  CheckRun run("reference", {.only = "of a test/C"});
  run.begins = [&](const CaseResult& r) { said.push_back(run.command(r)); };
  run.run({"of a test", "", [](CheckRun& own) {
             EXPECT_FALSE(own.wants("D"));
             EXPECT_TRUE(own.wants("C"));
             own.run("C's pow", []() -> Found { throw std::length_error("too long"); });
             own.run("D", [] { return Found(); });
           }});
  ASSERT_EQ(run.failures().size(), 1u);
  EXPECT_EQ(run.failures()[0].found.words, "too long");
  const std::string command = "weft check reference --only ";
  EXPECT_EQ(said, (std::vector{command + "'of a test/'", command + "'of a test/C'",
                               command + "'of a test/C'\\''s pow'"}));
}

TEST(Cases, AreSelectedByBeginnings) {
  const Beginnings some(std::vector<std::string>{"ops/add", "ops/add f32", "edges", ""});
  EXPECT_EQ(some.list(), (std::vector<std::string>{"edges", "ops/add"}));
  EXPECT_EQ(some.unmatched(), some.list());
  EXPECT_TRUE(some.cover("ops/add f32 [3]") && some.cover("edges/exp") && !some.cover("ops/abs"));
  EXPECT_EQ(some.unmatched(), (std::vector<std::string>{}));
  EXPECT_TRUE(some.lie_below("ops") && some.lie_below("ops/add") && !some.lie_below("ops/add f32"));
  CheckRun run("reference", {.only = "of a test", .skip = "of a test/B"});
  run.run({"of a test", "", [](CheckRun& own) {
             for (const char* name : {"A", "B", "BB", "C"}) own.run(name, [] { return Found(); });
           }});
  EXPECT_EQ(run.executed(), 2);
  EXPECT_TRUE(run.options().only.unmatched().empty() && run.options().skip.unmatched().empty());
  EXPECT_EQ(Beginnings("ops/ad").unmatched(), (std::vector<std::string>{"ops/ad"}));
}

// A processor mode that a case leaves changed is a failure of that case, not of the next one.
TEST(Cases, ThatChangeModesFail) {
  CheckRun run("reference", {.only = "of a test"});
  run.run({"of a test", "", [](CheckRun& own) {
             own.run("A", [] { return std::fesetround(FE_UPWARD), Found(); });
             own.run("B", [] { return Found(); });
             std::fesetround(FE_DOWNWARD);  // as loading a library may
             own.run("C", [] { return Found(); });
           }});
  ASSERT_EQ(run.failures().size(), 2u);
  EXPECT_NE(
      run.failures()[0].found.words.find("it changed this thread's modes: it does not round to the nearest"),
      std::string::npos);
  EXPECT_NE(run.failures()[1].found.words.find("were changed before it began"), std::string::npos);
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}

// None of the good backends here asks for a workspace, as others do.
class WantsWorkspace : public Wrapped {
 public:
  using Wrapped::Wrapped;
  void prepared(weft_plan& plan) override { plan.workspace = std::max(plan.workspace, kBytes); }
  weft_code launch(const weft_launch* l, weft_error* e) override {
    const auto room = l->workspace ? bytes_of(l->workspace) : std::span<char>();
    if (room.size() < kBytes)
      return backend::fill(e, WEFT_INVALID_ARGUMENT, "launched without its workspace");
    std::ranges::fill(room, char{0x5a});
    return Wrapped::launch(l, e);
  }

 private:
  static constexpr uint64_t kBytes = 1000;
};

TEST(Honesty, OneWhoseKernelsWantAWorkspaceIsGivenItInEveryCheck) {
  static Wrapped* const one = [] {
    auto* made = new WantsWorkspace(  // a backend lives until the process ends
        "wants_workspace", value_or_raise(seam::registry().open("reference"))->backend());
    adopt(*made);
    return made;
  }();
  CheckRun run(one->name(), {});
  for (const Check* check : all_checks())  // any_thread_count launches as others do, and for long
    if (!kCostly.contains(check->name) && check->name != std::string_view("any_thread_count"))
      run.run(*check);
  for (const auto& f : run.failures()) ADD_FAILURE() << run.command(f) << "\n  " << f.found.words;
  EXPECT_GT(run.executed(), 0);
}

// A child that is not through has not passed, however it ended.
TEST(Honesty, ChildrenSayHowTheyEnd) {
  const std::vector<std::function<void()>> jobs = {
      [] {},
      [] { ::_exit(0); },
      [] { throw std::length_error("too long"); },
      [] { throw Error(invalid("3 operands")); },
      [] { ::raise(SIGFPE); },
      [] {},
  };
  const auto said = in_children(jobs.size(), [&](size_t i) { jobs[i](); });
  EXPECT_EQ(said, (std::vector<std::string>{"", "ended the process: exit(0)", "too long",
                                            "invalid argument: 3 operands",
                                            "ended the process: Floating point exception", ""}));
}

TEST(Honesty, EveryLiarIsCaughtByItsCheck) {
  WEFT_NEEDS_PLUGIN("far");
  const char* given = std::getenv("WEFT_SEED");
  const uint64_t seed = given ? std::strtoull(given, nullptr, 10) : std::random_device()();
  seed_liars(seed);
  fmt::print("  what is drawn of liars: WEFT_SEED={}\n", seed);
  std::set<std::string> here, bitten, passed;
  for (const Check* check : all_checks()) here.insert(check->name);
  for (const auto& liar : all_liars()) {
    if (!here.contains(check_of(liar))) {  // the sanitizers' builds have no oracle
      EXPECT_TRUE(kCostly.contains(check_of(liar)) || kByTheOracle.contains(check_of(liar)))
          << liar.name << " names " << liar.caught_by;
      continue;
    }
    if (!is_backend_available(liar.on)) {  // nor most backends
      bitten.insert(check_of(liar));
      continue;
    }
    wake(liar);
    const CheckRun run = held_to(liar.name, liar.caught_by, true);
    EXPECT_FALSE(run.failures().empty())
        << liar.name << " (" << liar.fault << ") is not caught by " << liar.caught_by;
    if (run.failures().empty()) continue;
    const auto& f = run.failures()[0];
    fmt::print("  {:<30} {:<48} {}/{}: {}\n", liar.name, liar.fault, f.check, f.name,
               f.found.words.substr(0, 90));
    bitten.insert(check_of(liar));
    if (kCostly.contains(check_of(liar)) && passed.insert(liar.on + std::string(liar.caught_by)).second) {
      EXPECT_TRUE(held_to(liar.on, liar.caught_by).failures().empty()) << liar.caught_by << " on " << liar.on;
    }
  }
  for (const auto& name : here)
    EXPECT_TRUE(bitten.contains(name) || kCostly.contains(name) || kOthersProve.contains(name))
        << "no liar fails " << name << ": it proves nothing";
}

}  // namespace
}  // namespace weft::testing::honesty_test
