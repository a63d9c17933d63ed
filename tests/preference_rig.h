#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/log.h"
#include "conformance/seam/rig.h"
#include "eager/apply.h"
#include "seam/preference.h"
#include "test_backends.h"

namespace weft::testing {

namespace fs = std::filesystem;
using conformance::Ask;
using conformance::counting;
using conformance::Rig;

inline const Ask kExp{.op = "exp", .inputs = {counting({2, 40})}};
inline constexpr const char* kUsual = "native.exp.tiles";
inline constexpr const char* kOther = "native.exp.shared";

/// A cache folder of the test's own.
class Preference : public ::testing::Test {
 protected:
  Preference() {
    if (const char* before = std::getenv("WEFT_CACHE_DIR")) before_ = before;
    fs::remove_all(folder_);
    setenv("WEFT_CACHE_DIR", folder_.c_str(), 1);
    unsetenv("WEFT_MEASURED");
    forget();
  }
  ~Preference() override {
    setenv("WEFT_MEASURED", "0", 1);
    before_.empty() ? unsetenv("WEFT_CACHE_DIR") : setenv("WEFT_CACHE_DIR", before_.c_str(), 1);
    forget();
    fs::remove_all(folder_);
  }
  static void forget() {
    seam::preferences().reload();
    eager::clear_call_cache();
  }
  static seam::Device& device() { return *value_or_raise(seam::registry().open("native")); }
  static seam::CallPtr call(const Ask& ask = kExp) { return value_or_raise(describe(ask)); }
  /// A measurement as this process would make it.
  static seam::Measured measured(const std::string& kernel, const Ask& ask = kExp) {
    seam::Measured m{
        .call = seam::signature(call(ask)->desc()), .kernel = kernel, .contents = {}, .instead = kUsual};
    m.nanoseconds = 100, m.nanoseconds_instead = 150;
    (void)seam::registry().find_kernel(device(), kernel, &m.contents);
    return m;
  }
  static void keep(const seam::Measured& m) { ASSERT_TRUE(seam::preferences().keep(device(), {&m, 1}).ok()); }

  struct Chosen {
    std::string kernel, why;
    std::vector<double> numbers;
  };
  static Chosen chosen(const Ask& ask = kExp, const Policy& policy = {}) {
    Rig rig("native");
    auto desc = call(ask)->desc();
    desc.determinism = policy.determinism, desc.precision = policy.precision;
    std::vector<seam::Refusal> refusals;
    const auto plan = value_or_raise(
        seam::select(device(), std::make_shared<const seam::OwnedCall>(std::move(desc)), &refusals));
    const auto run = value_or_raise(rig.launch(*plan, ask));
    return {plan->kernel.id, plan->why, conformance::numbers(run.outputs[0])};
  }
  fs::path file() const { return folder_ / seam::preference_file(device()); }
  std::string text() const {
    std::ifstream in(file(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& text) const {
    fs::create_directories(folder_);
    std::ofstream(file(), std::ios::binary) << text;
    forget();
  }
  /// Nothing but the usual kernel, with its bits.
  void expect_usual(const std::string& after) const {
    const auto now = chosen();
    EXPECT_EQ(now.kernel, kUsual) << after;
    EXPECT_EQ(now.numbers, usual_) << after;
  }

  fs::path folder_ = fs::temp_directory_path() / fmt::format("weft_preference_{}", getpid());
  std::string before_;
  std::vector<double> usual_;

  void SetUp() override {
    WEFT_NEEDS_BACKEND("native");
    set_log_sink([](LogLevel, std::string_view) {});  // each bad file is told of once
    usual_ = chosen().numbers;
  }
  void TearDown() override { set_log_sink(nullptr); }
};

}  // namespace weft::testing
