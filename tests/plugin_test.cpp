#include <sys/wait.h>

#include <cstdio>
#include <cstring>
#include <deque>
#include <fstream>

#include "backend_harness.h"
#include "seam/registry.h"
#include "test_backends.h"
#include "weft/jit.h"
#include "weft/ledger.h"
#include "weft/ops.h"
#include "weft/policy_scope.h"

// Bad plug-ins are refused with a message that names the step; the host is unaffected.
namespace weft::testing::plugin_test {
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
    {"bad_lying_abi", "table", "it was built for seam version 7, this host speaks 1 to 2"},
    {"bad_zeroed_table", "table", "its table says it has 0 bytes"},
    {"bad_short_table", "table", "bytes; 104 to 65536 make sense"},
    {"bad_garbage_size", "table", "its table says it has 3735928559 bytes"},
    {"bad_missing_entry", "table", "the required entry synchronize is missing"},
    {"bad_half_points", "table", "it has 1 of the three entries mark, wait and await; wanted all or none"},
    {"bad_half_provider", "table", "it has one of attach and detach; wanted both or none"},
    {"bad_ranked_provider", "table",
     "it is a provider of rank 9; only a backend with devices can be the default"},
    {"bad_serves_nobody", "table",
     "it has attach or detach, which are a provider's, and serves no kind of device"},
    {"bad_no_table", "negotiate", "it answered yes but gave no table"},
    {"bad_failing_negotiate", "negotiate", "libvendor.so.9 was not found on this machine"},
    {"bad_throwing", "negotiate", "it threw an exception, which no backend may: out of paper"},
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

// A second try reports the error again, and nothing accumulates.
TEST(Plugin, LoadedAgainAndAgainTheReportStaysAsItWas) {
  ASSERT_TRUE(load_plugin("good_plain_c"));
  std::vector<std::string> paths = {plugin_path("good_plain_c")};
  for (const auto& bad : kBad) paths.push_back(plugin_path(bad.name));
  std::vector<std::string> said;
  for (const auto& path : paths) said.push_back(refusal(path));
  EXPECT_NE(said[0].find("a backend named good_plain_c is there already"), std::string::npos) << said[0];
  const size_t listed = get_backends().size();
  for (int i = 0; i < 20; ++i)
    for (size_t k = 0; k < paths.size(); ++k) EXPECT_EQ(refusal(paths[k]), said[k]);
  EXPECT_EQ(get_backends().size(), listed);
  expect_host_works("loading again");
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

// Devices and their threads live until the process ends, and so may tensors, destroyed after main().
TEST(PluginDeathTest, AProcessEndsInPeaceWithWhateverIsLoadedAndHeld) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process of its own
  for (const char* name : {"good_plain_c", "far", "good_longer_table"})
    EXPECT_EXIT(
        {
          static Tensor held;
          thread_local Tensor held_by_thread;
          const bool loaded = load_plugin(name) && refusal(plugin_path("bad_zeroed_table")) != "loaded";
          const OnBackend on(name);
          held = Tensor::of({1, 2}, {2}) + Tensor::of({3, 4}, {2});
          held_by_thread = held + held;
          std::exit(loaded && held_by_thread.backend() == name ? 0 : 2);
        },
        ::testing::ExitedWithCode(0), "")
        << name;
}

// Files of a folder are loaded in the order of their names.
TEST(PluginDeathTest, AProviderMayBeLoadedBeforeTheBackendThatItServes) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process in which neither is loaded yet
  EXPECT_EXIT(
      {
        const bool loaded = load_plugin("good_early_provider") && load_plugin("good_version_1");
        std::exit(loaded && get_backend_info("good_early_provider").available() ? 0 : 2);
      },
      ::testing::ExitedWithCode(0), "");
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

TEST(Plugin, TheFirstDeviceHasTheBackendsNameWithAndWithoutItsNumber) {
  EXPECT_TRUE(is_backend_available("reference:0"));
  EXPECT_EQ(Tensor::of({1}, {1}).to("reference:0").backend(), "reference");
  EXPECT_FALSE(is_backend_available("reference:1"));
  EXPECT_FALSE(is_backend_available("reference:00"));
}

TEST(Plugin, OneOfVersion1KeepsRunning) {
  ASSERT_TRUE(load_plugin("good_version_1"));
  reset_ledger();
  const std::string name = "good_version_1";
  const OnBackend on(name);
  const auto x = Tensor::of({1, 2, 3}, {3}), y = Tensor::of({10, 20, 30}, {3});
  EXPECT_EQ((x + y).to_vector<float>(), (std::vector<float>{11, 22, 33}));
  EXPECT_EQ(calls_of("good_version_1.add.late"), 1u);
  auto program = compile([](const std::vector<Tensor>& in) { return std::vector{in[0] * in[1] + in[0]}; },
                         {{"x", {DType::f32, {3}}}, {"y", {DType::f32, {3}}}}, {.backend = name});
  EXPECT_EQ(program({x, y})[0].to_vector<float>(), (std::vector<float>{11, 42, 93}));
  EXPECT_EQ(calls_of("good_version_1.region.late"), 1u);
  seam::Device& device = *value_or_raise(seam::registry().open(name));
  const auto queue = value_or_raise(device.open_queue());
  EXPECT_GE(value_or_raise(queue->await(value_or_raise(queue->mark()))), 1u);
}

// ---- what a plug-in's structs say, in this process ----

/// The table of `reference`, by another name.
weft_backend good_table(const std::string& name) {
  static std::deque<std::string> names;  // a table only points to its own
  const weft_backend* good = nullptr;
  weft_error error{.size = sizeof error, .text = {}};
  EXPECT_EQ(weft_negotiate_reference(&seam::host(), &good, &error), WEFT_OK) << error.text;
  weft_backend t = *good;
  t.name = names.emplace_back(name).c_str();
  return t;
}

/// What opening a backend's device says.
std::string said_at_open(const std::string& name) {
  const auto device = seam::registry().open(name);
  return device.ok() ? "opened" : device.status().text();
}

const weft_backend& inner() {
  static const weft_backend t = good_table("abi_inner");
  return t;
}
std::function<void(weft_capability&)> damage;  // to what a device says of itself

TEST(PluginStructs, ACapabilityIsLookedAtFirst) {
  int n = 0;
  const auto adopted = [&](const std::function<void(weft_capability&)>& wrong) {
    damage = wrong;
    weft_backend t = good_table(fmt::format("abi_capability_{}", n++));
    t.open_device = [](uint32_t ordinal, weft_device* d, weft_capability* c, weft_error* e) {
      const weft_code code = inner().open_device(ordinal, d, c, e);
      damage(*c);
      return code;
    };
    t.describe = nullptr;
    if (n % 2 == 0)  // by either way
      t.describe = [](uint32_t ordinal, weft_capability* c, weft_error* e) {
        const weft_code code = inner().describe(ordinal, c, e);
        damage(*c);
        return code;
      };
    raise_if(seam::registry().adopt(t, "a test"));
    return get_backend_info(t.name);
  };
  const std::pair<const char*, std::function<void(weft_capability&)>> bad[] = {
      {"device 0: it gave no reason", [](auto& c) { c = {}; }},
      {"device 0: asleep", [](auto& c) { c.available = 0, std::strcpy(c.reason, "asleep"); }},
      {"at multiples of 3, which is no power of two", [](auto& c) { c.offset_alignment = 3; }},
      {"its queues are of kind 7", [](auto& c) { c.queue_kind = 7; }},
  };
  for (const auto& [words, wrong] : bad) {
    const auto info = adopted(wrong);
    EXPECT_EQ(info.state, "unavailable") << words;
    EXPECT_NE(info.reason.find(words), std::string::npos) << info.reason;
    EXPECT_NE(said_at_open(info.name).find(words), std::string::npos) << said_at_open(info.name);
  }
  const auto endless = adopted([](auto& c) {
    c.size = 0xdeadbeef;  // it is the host's struct: its size is known here
    for (auto* text : {c.kind, c.label, c.numerics, c.dialect}) std::memset(text, 'x', 32);
    std::memset(c.label, 'x', sizeof c.label), std::memset(c.numerics, 'x', sizeof c.numerics);
  });
  EXPECT_EQ(endless.state, "available");
  EXPECT_EQ(endless.devices.at(0).kind, std::string(31, 'x'));
  EXPECT_EQ(endless.devices.at(0).label, std::string(127, 'x'));
}

weft_kernel record;             // as a plug-in lists it
const weft_kernel* records[1];  // the list
const weft_kernel* const* given_list;
uint32_t given_count;

TEST(PluginStructs, AKernelsRecordIsLookedAtFirst) {
  weft_backend t = good_table("abi_kernels");
  t.kernels = [](weft_device, const weft_kernel* const** list, uint32_t* n, weft_error*) {
    *list = given_list, *n = given_count;
    return weft_code{WEFT_OK};
  };
  raise_if(seam::registry().adopt(t, "a test"));
  const weft_kernel* const* good = nullptr;
  uint32_t n = 0;
  ASSERT_EQ(inner().kernels(nullptr, &good, &n, nullptr), WEFT_OK);
  const std::unique_ptr<char[]> older(new char[40]());  // the bytes behind it are not there
  const uint32_t forty = 40;
  std::memcpy(older.get(), &forty, sizeof forty);
  const std::pair<const char*, std::function<void()>> bad[] = {
      {"it lists 1 of them, and no list", [] { given_list = nullptr; }},
      {"it lists 4294967295 of them", [] { given_count = UINT32_MAX; }},
      {"number 0 is null", [] { records[0] = nullptr; }},
      {"number 0 says it has 40 bytes",
       [&] { records[0] = reinterpret_cast<const weft_kernel*>(older.get()); }},
      {"number 0 says it has 0 bytes", [] { record = {}; }},
      {"number 0 says it has 3735928559 bytes", [] { record.size = 0xdeadbeef; }},
      {"number 0 has no id", [] { record.id = nullptr; }},
      {"number 0 has no id", [] { record.id = ""; }},
      {"has the id 'fast'; wanted <provider>.<op>.<variant>", [] { record.id = "fast"; }},
      {"has the id 'mychip.fast'; wanted", [] { record.id = "mychip.fast"; }},
      {"has the id 'mychip.exp.'; wanted", [] { record.id = "mychip.exp."; }},
      {"has the id '.exp.fast'; wanted", [] { record.id = ".exp.fast"; }},
      {"has the id 'mychip..fast'; wanted", [] { record.id = "mychip..fast"; }},
      {"number 0 has no op", [] { record.op = nullptr; }},
      {"number 0 has no reads", [] { record.reads = nullptr, record.n_reads = 2; }},
      {"number 0 has no accepts", [] { record.accepts = nullptr; }},
      {"number 0 has no launch", [] { record.launch = nullptr; }},
  };
  for (const auto& [words, wrong] : bad) {
    record = *good[0], records[0] = &record, given_list = records, given_count = 1;
    wrong();
    const auto said = said_at_open("abi_kernels");
    EXPECT_NE(said.find("version mismatch: kernels of abi_kernels: "), std::string::npos) << said;
    EXPECT_NE(said.find(words), std::string::npos) << said;
  }
  given_list = good, given_count = n;  // from here on it is a good one
  expect_host_works("bad records");
}

bool on_strike = true;

TEST(PluginStructs, ErrorsWithoutWordsOrEndOrByExceptionAreToldAllTheSame) {
  weft_backend t = good_table("abi_queue");
  t.open_queue = [](weft_device d, weft_queue* q, weft_error* e) {
    if (!on_strike) return inner().open_queue(d, q, e);
    e->size = 0xdeadbeef;
    std::memset(e->text, 'x', sizeof e->text);
    return weft_code{WEFT_DEVICE};
  };
  raise_if(seam::registry().adopt(t, "a test"));
  EXPECT_EQ(said_at_open("abi_queue"),
            "device error: abi_queue: opening a queue: " + std::string(sizeof(weft_error::text), 'x'));
  on_strike = false;
  t = good_table("abi_probe");
  t.probe = [](weft_probe*, weft_error*) -> weft_code { throw 7; };
  raise_if(seam::registry().adopt(t, "a test"));
  EXPECT_EQ(get_backend_info("abi_probe").reason, "it threw an exception, which no backend may");
  t = good_table("abi_silent");
  t.probe = [](weft_probe*, weft_error*) { return weft_code{77}; };
  raise_if(seam::registry().adopt(t, "a test"));
  EXPECT_EQ(get_backend_info("abi_silent").reason, "it gave no reason");
  for (const auto& name : {std::string(), std::string("a b"), std::string("a:1"), std::string(65, 'a')})
    EXPECT_FALSE(seam::registry().adopt(good_table(name), "a test").ok()) << name;
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
}  // namespace weft::testing::plugin_test
