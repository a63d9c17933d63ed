#include <sys/wait.h>

#include <cstdio>
#include <fstream>

#include "test_backends.h"
#include "weft/ledger.h"
#include "weft/ops.h"
#include "weft/policy_scope.h"

// Bad plug-ins are refused in words that name the step; the host goes on as if nothing had been.
namespace weft::testing {
namespace {

namespace fs = std::filesystem;

std::string plugin_path(const std::string& name) { return WEFT_BINARY_DIR "/plugins/" + name + ".so"; }

std::string refusal(const std::string& path) {
  try {
    load_backend(path);
  } catch (const Error& e) {
    return e.what();
  }
  return "loaded";
}

/// The report's last entry with this origin.
BackendInfo reported(const std::string& origin) {
  BackendInfo found;
  for (auto& b : get_backends())
    if (b.origin == origin) found = b;
  return found;
}

void expect_host_works(const std::string& after) {
  const auto sum = Tensor::of({1, 2}, {2}) + Tensor::of({3, 4}, {2});
  EXPECT_EQ(sum.to_vector<float>(), (std::vector<float>{4, 6})) << "after " << after;
}

constexpr struct Bad {
  const char* name;
  const char* step;
  const char* words;
} kBad[] = {
    {"bad_newer_abi", "negotiate", "built for ABI 7, the host speaks less"},
    {"bad_lying_abi", "table", "it was built for seam version 7, this host speaks 1 to 1"},
    {"bad_zeroed_table", "table", "its table says it has 0 bytes"},
    {"bad_short_table", "table", "bytes; 104 to 65536 make sense"},
    {"bad_garbage_size", "table", "its table says it has 3735928559 bytes"},
    {"bad_missing_entry", "table", "the required entry synchronize is missing"},
    {"bad_no_table", "negotiate", "it answered yes but gave no table"},
    {"bad_failing_negotiate", "negotiate", "libvendor.so.9 was not found on this machine"},
    {"bad_no_symbol", "symbol", "it exports no weft_negotiate, so it is not a Weft backend"},
};

TEST(Plugin, ABadOneIsRefusedInWordsThatNameTheStep) {
  for (const auto& bad : kBad) {
    const auto path = plugin_path(bad.name);
    ASSERT_TRUE(fs::exists(path)) << path;
    const auto text = refusal(path);
    EXPECT_NE(text.find("backend " + path + ": " + bad.step + ": "), std::string::npos) << text;
    EXPECT_NE(text.find(bad.words), std::string::npos) << text;
    const auto info = reported(path);
    EXPECT_EQ(info.state, "refused") << bad.name;
    EXPECT_FALSE(info.available());
    EXPECT_NE(info.reason.find(bad.words), std::string::npos) << info.reason;
    expect_host_works(bad.name);
    EXPECT_NE(refusal(path), "loaded") << "a second try";
  }
}

TEST(Plugin, AFileThatIsNoSharedObjectIsRefused) {
  const auto folder = fs::temp_directory_path() / fmt::format("weft_plugins_{}", getpid());
  fs::create_directories(folder);
  std::ofstream(folder / "empty.so").close();
  std::ofstream(folder / "text.so") << "this is not a shared object\n";
  fs::create_directories(folder / "folder.so");
  for (const char* name : {"empty.so", "text.so", "folder.so", "nowhere.so"}) {
    const auto path = (folder / name).string(), text = refusal(path);
    EXPECT_NE(text.find("backend " + path + ": open: "), std::string::npos) << text;
    EXPECT_EQ(reported(path).state, "refused") << name;
    expect_host_works(name);
  }
  fs::remove_all(folder);
}

TEST(Plugin, ATakenNameIsRefused) {
  const auto text = refusal(plugin_path("bad_same_name"));
  EXPECT_NE(text.find("a backend named reference is there already (built in)"), std::string::npos) << text;
  EXPECT_EQ(reported(plugin_path("bad_same_name")).state, "refused");
  EXPECT_EQ(get_backend_info("reference").state, "available");
}

TEST(Plugin, OneWithoutADeviceIsUnavailableAndSaysWhy) {
  if (reported(plugin_path("good_no_device")).name.empty()) {  // once, also where tests are repeated
    EXPECT_EQ(refusal(plugin_path("good_no_device")), "loaded");
  }
  const auto info = get_backend_info("good_no_device");
  EXPECT_EQ(info.state, "unavailable");
  EXPECT_EQ(info.reason, "no such chip in this machine");
  try {
    set_default_backend("good_no_device");
    FAIL() << "a backend without a device became the default";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("unavailable: no such chip in this machine"), std::string::npos)
        << e.what();
  }
}

uint64_t calls_of(const std::string& kernel) {
  uint64_t n = 0;
  for (const auto& r : ledger_rows())
    if (r.kernel == kernel) n += r.calls;
  return n;
}

TEST(Plugin, ThreeAtOnceLoadAndRun) {
  reset_ledger();
  for (const char* name : {"good_longer_table", "good_older_table", "good_plain_c"}) {
    ASSERT_TRUE(load_plugin(name)) << name;
    const OnBackend on(name);
    const auto y = Tensor::of({1, 2, 3}, {3}) + Tensor::of({10, 20, 30}, {3});
    EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{11, 22, 33})) << name;
    EXPECT_EQ(y.backend(), name);
  }
  EXPECT_EQ(calls_of("good_plain_c.add.loop"), 1u);
  EXPECT_EQ(calls_of("good_longer_table.add.shared"), 1u);
  EXPECT_EQ(calls_of("good_older_table.add.shared"), 1u);
}

TEST(Plugin, OneInPlainCRunsItsKernelAndRefusesTheRestWithItsOwnWords) {
  ASSERT_TRUE(load_plugin("good_plain_c"));
  const OnBackend on("good_plain_c");
  const auto a = Tensor::of({1, 2}, {2}), b = Tensor::of({3}, {1});
  try {
    (void)(a + b);
    FAIL() << "broadcasting was accepted";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("good_plain_c.add.loop  wants two equal f32 shapes"),
              std::string::npos)
        << e.what();
  }
  const PolicyScope allow(Policy{.fallback = Fallback::allow});
  EXPECT_EQ((a * a).to_vector<float>(), (std::vector<float>{1, 4}));
}

struct Printed {
  int status = -1;
  std::string text;
};
Printed cli(const std::string& arguments) {
  Printed out;
  FILE* pipe = popen((WEFT_BINARY_DIR "/weft " + arguments + " 2>&1").c_str(), "r");
  char buffer[4096];
  for (size_t n; pipe && (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) out.text.append(buffer, n);
  const int status = pipe ? pclose(pipe) : -1;
  out.status = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
  return out;
}

TEST(Plugin, TheCommandLineSaysOneClearLineAndFails) {
  ASSERT_TRUE(fs::exists(WEFT_BINARY_DIR "/weft")) << "build weft_cli";
  for (const auto& bad : kBad) {
    const auto path = plugin_path(bad.name);
    const auto printed = cli("backends --plugin " + path);
    EXPECT_EQ(printed.status, 1) << bad.name;
    EXPECT_EQ(std::count(printed.text.begin(), printed.text.end(), '\n'), 1) << printed.text;
    EXPECT_EQ(printed.text.rfind("weft: ", 0), 0u) << printed.text;
    EXPECT_NE(printed.text.find(path + ": " + bad.step), std::string::npos) << printed.text;
  }
  const auto good = cli("backends --plugin " + plugin_path("good_plain_c"));
  EXPECT_EQ(good.status, 0) << good.text;
  EXPECT_NE(good.text.find("good_plain_c"), std::string::npos) << good.text;
}

}  // namespace
}  // namespace weft::testing
