#include <random>

#include "base/thread_pool.h"
#include "preference_rig.h"
#include "weft/jit.h"
#include "weft/ledger.h"
#include "weft/ops.h"
#include "weft/policy_scope.h"

// Measurements precede selection, and never change a result.
namespace weft::testing::preference_test {
namespace {

TEST_F(Preference, AMeasuredKernelIsTakenAndSaysSo) {
  expect_usual("nothing");
  keep(measured(kOther));
  for (const char* when : {"now", "as another process reads it"}) {
    const auto now = chosen();
    EXPECT_EQ(now.kernel, kOther) << when;
    EXPECT_EQ(now.why, std::string("measured: 1.50 times as fast as ") + kUsual) << when;
    forget();
  }
  EXPECT_EQ(chosen({.op = "exp", .inputs = {counting({2, 41})}}).kernel, kUsual) << "another call";
  {
    const seam::Unmeasured alone;
    expect_usual("Unmeasured");
  }
  setenv("WEFT_MEASURED", "0", 1);
  expect_usual("WEFT_MEASURED=0");
}

TEST_F(Preference, HoldsForSingleOpsSessionsAndCompiledPrograms) {
  const Ask ask{.op = "exp", .inputs = {counting({2, 3})}};
  keep(measured(kOther, ask));
  const auto ran = [](const std::function<void()>& f) {
    reset_ledger();
    f();
    std::string kernels;
    for (const auto& r : ledger_rows())
      if (r.op == "exp") kernels += r.kernel;
    return kernels;
  };
  const OnBackend on("native");
  const Tensor x = Tensor::of({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(ran([&] { (void)exp(x).to_vector<float>(); }), kOther);
  auto f = compile([](const std::vector<Tensor>& in) { return std::vector<Tensor>{exp(in[0])}; },
                   {{"x", {DType::f32, {2, 3}}}}, {.fuse = false});
  EXPECT_EQ(ran([&] { (void)f({x}); }), kOther);
}

// A provider's kernel, of which nobody has asked for by name.
TEST_F(Preference, AKernelOfAProviderOfTheDeviceCanBeTheFastest) {
  WEFT_NEEDS_PLUGIN("good_provider");
  keep(measured("good_provider.exp.plain"));
  EXPECT_EQ(chosen().kernel, "good_provider.exp.plain");
}

TEST_F(Preference, AStaleOneIsPassedOver) {
  WEFT_NEEDS_PLUGIN("good_provider");
  auto m = measured(kOther);
  m.contents += "x";
  keep(m);
  expect_usual("other contents");
  EXPECT_NE(chosen().why.find(std::string(kOther) + ": measured as the fastest, and changed since"),
            std::string::npos)
      << chosen().why;
  m = measured("good_provider.exp.plain");
  ASSERT_TRUE(m.contents.ends_with("library 3")) << m.contents;
  m.contents.back() = '4';
  keep(m);
  expect_usual("another version of the library that the kernel runs");
}

TEST_F(Preference, OnesOfAnotherMachineAreNot) {
  keep(measured(kOther));
  const std::string good = text(), machine = seam::machine_of(device());
  const auto at = good.find(machine);
  ASSERT_NE(at, std::string::npos) << good;
  write(good.substr(0, at) + "another " + good.substr(at));
  expect_usual("another machine's");
  write(good);
  EXPECT_EQ(chosen().kernel, kOther) << "this machine's";
  set_thread_count(1);
  expect_usual("another number of threads");
  set_thread_count(0);
  EXPECT_EQ(chosen().kernel, kOther);
}

TEST_F(Preference, AWrongOneIsPassedOver) {
  WEFT_NEEDS_PLUGIN("good_provider");
  const std::pair<const char*, const char*> wrong[] = {
      {"native.sqrt.tiles", "and no kernel for this op"},
      {"native.exp.nothing", "and not here"},
      {"nobody.exp.fast", "and not here"},
      {"reference.exp.shared", "and not here"},  // of another device
      {"null.any.nothing", "and not here"},
      {"native.region.tiles", "and no kernel for this op"},
      {"good_provider.exp.never", "and can't be prepared: good_provider.exp.never: it never can"},
      {"good_provider.exp.loose",
       "and can't be prepared: good_provider.exp.loose: precision mode 2 was chosen"},
      {"good_provider.exp.proud",
       "and can't be prepared: good_provider.exp.proud: determinism level 4 was chosen; 0 is wanted, and it "
       "gives 3 at most"}};
  for (const auto& [kernel, why] : wrong) {
    keep(measured(kernel));
    expect_usual(kernel);
    EXPECT_NE(chosen().why.find(why), std::string::npos) << kernel << ": " << chosen().why;
  }
}

TEST_F(Preference, PrecisionDeterminismAndRefusalsStillRule) {
  WEFT_NEEDS_PLUGIN("good_provider");
  const Ask root{.op = "sqrt", .inputs = {counting({5})}};
  auto m = measured("good_provider.sqrt.any", root);
  keep(m);
  const Policy threads{.determinism = WEFT_DETERMINISM_THREADS};
  m.call.replace(m.call.rfind(" d0"), 3, " d3");  // the same for calls that want a promise
  keep(m);
  EXPECT_EQ(chosen(root).kernel, "good_provider.sqrt.any");
  EXPECT_EQ(chosen(root, threads).kernel, "native.sqrt.tiles");
  m.kernel = "good_provider.sqrt.timid";
  keep(m);
  EXPECT_EQ(chosen(root, threads).kernel, "native.sqrt.tiles");
  EXPECT_NE(chosen(root, threads).why.find("determinism level 0 was chosen; 3 is wanted"), std::string::npos)
      << chosen(root, threads).why;
  const Ask wide{.op = "exp", .inputs = {counting({4}, 1, DType::f64)}};
  keep(measured("good_provider.exp.plain", wide));
  EXPECT_EQ(chosen(wide).kernel, kOther);  // the usual one of f64
  EXPECT_NE(chosen(wide).why.find("and refuses: wants one f32"), std::string::npos) << chosen(wide).why;
}

TEST_F(Preference, HostileFilesChangeNothing) {
  keep(measured(kOther));
  const std::string good = text();
  const std::string line = good.substr(good.find('\n', good.find('\n') + 1) + 1);
  const std::string head = good.substr(0, good.size() - line.size());
  const std::string huge(20, '9');
  std::string more = line;
  more.replace(more.find("\t100\t"), 5, "\t" + huge + "\t");
  const std::pair<const char*, std::string> files[] = {
      {"empty", ""},
      {"zeros", std::string(4096, '\0')},
      {"no head", line},
      {"another version", "weft measurements 2" + good.substr(good.find('\n'))},
      {"no end of the line", good.substr(0, good.size() - 1)},
      {"twice the same call", good + line},
      {"a number that no word holds", head + more},
      {"a negative number", head +
                                [&] {
                                  auto s = line;
                                  return s.replace(s.find("\t100\t"), 5, "\t-100\t");
                                }()},
      {"five fields", head + line.substr(line.find('\t') + 1)},
      {"a line too many", good + "\n"},
      {"20 MiB", good + std::string(20 << 20, 'x') + "\n"},
      {"20 MiB of lines", good + [] {
         std::string s;
         while (s.size() < 20 << 20) s += "a\tb\tc\t1\t2\td\n";
         return s;
       }()}};
  for (const auto& [what, file] : files) {
    write(file);
    expect_usual(what);
  }
  fs::remove(file());
  fs::create_directories(file());  // a folder of this name
  forget();
  expect_usual("a folder");
}

// A randomly damaged file: the result is always that of one of the two kernels, and nothing crashes.
TEST_F(Preference, MutatedFilesGiveNoOtherResult) {
  keep(measured(kOther));
  const std::string good = text();
  const auto other = chosen().numbers;
  std::mt19937_64 random(1);
  int taken = 0;
  for (int i = 0; i < 500; ++i) {
    std::string bad = good;
    for (size_t n = 1 + random() % 4; n > 0; --n) {
      const size_t at = random() % bad.size();
      switch (random() % 4) {
        case 0: bad[at] = static_cast<char>(random()); break;
        case 1: bad.erase(at, 1 + random() % 20); break;
        case 2: bad.insert(at, bad.substr(random() % bad.size(), random() % 40)); break;
        default: bad[at] = "\t\n,.0"[random() % 5];
      }
      if (bad.empty()) bad = "x";
    }
    write(bad);
    const auto now = chosen();
    taken += now.kernel == kOther;
    EXPECT_EQ(now.numbers, now.kernel == kOther ? other : usual_) << now.kernel << "\n" << bad;
    EXPECT_TRUE(now.kernel == kOther || now.kernel == kUsual) << now.kernel;
  }
  EXPECT_LT(taken, 400);
}

TEST_F(Preference, AFolderThatCannotBeWrittenIsAnErrorAndLosesNothing) {
  std::ofstream(folder_) << "a file where the folder would be";
  const auto m = measured(kOther);
  const Status s = seam::preferences().keep(device(), {&m, 1});
  EXPECT_EQ(s.code(), Code::io) << s.text();
  EXPECT_EQ(chosen().kernel, kOther) << "this process has it all the same";
}

}  // namespace
}  // namespace weft::testing::preference_test
